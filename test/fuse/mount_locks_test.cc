// A user whose requests on names are held beside others in the same directory, which the kernel
// locks meanwhile.
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/call_of.h"
#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Mallory's requests are limited.
std::string config_of(const std::string& policy, int operations) {
  return R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
scheduler: {policy: )" +
         policy + R"(, schedule: [io, metadata]}
virtual_pfs: {slow: {operations: )" +
         std::to_string(operations) + R"(, burst_operations: 1}, default: {}}
rules:
  - match: {uid: 1002}
    virtual_pfs: slow
)";
}

// What waits for the lock of a directory waits for two holds of half a second at most.
constexpr auto kTwoHolds = 1s;
// And so much for a machine with other things to do.
constexpr auto kSlack = 3s;

class MountLocks : public MountTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void mount(int operations) {
    mount_.emplace(MountProcess::Settings{.config = config_of(GetParam(), operations)});
    fs::permissions(mount_->scratch(), fs::perms::all);
    for (const char* const name : {"shared", "own"}) {
      fs::create_directories(mount_->below() / name);
      fs::permissions(mount_->below() / name, fs::perms::all);
    }
  }
  void TearDown() override {
    for (CallOf& each : floods_) each.kill();
    floods_.clear();
    mount_.reset();
  }

  // Starts a process of Mallory's whose threads make names in a directory, where it is already.
  void flood(const std::string& directory, int threads) {
    const std::string path = mount_->path() / directory;
    floods_.emplace_back(kMallory, [path, threads] {
      if (::chdir(path.c_str()) != 0) return errno;
      std::vector<std::thread> all;
      for (int thread = 0; thread < threads; ++thread) {
        all.emplace_back([thread] {
          for (int i = 0;; ++i) {
            const std::string name = "m" + std::to_string(thread) + "-" + std::to_string(i);
            (void)::mkdir(name.c_str(), 0755);
          }
        });
      }
      for (std::thread& each : all) each.join();
      return 0;
    });
    const fs::path place = "/proc/" + std::to_string(floods_.back().process()) + "/cwd";
    ASSERT_TRUE(comes_true([&] { return fs::read_symlink(place) == path; }));
    std::this_thread::sleep_for(1s);
  }
  [[nodiscard]] std::uint64_t operations_of_mallory() {
    const nlohmann::json status = mount_->status();
    for (const nlohmann::json& each : status["virtual_pfs"]) {
      if (each["name"] == "slow") return each["done_requests"];
    }
    return 0;
  }
  // How long the user's call takes; 20 s if it waits longer.
  std::chrono::steady_clock::duration time_of(uid_t uid, const std::function<int()>& act) {
    const auto begin = std::chrono::steady_clock::now();
    CallOf call(uid, act);
    const auto result = call.result(20s);
    EXPECT_EQ(result, 0);
    if (!result) {
      for (CallOf& each : floods_) each.kill();
    }
    return std::chrono::steady_clock::now() - begin;
  }
  static int list(const std::string& path) {
    DIR* const stream = ::opendir(path.c_str());
    if (stream == nullptr) return errno;
    while (::readdir(stream) != nullptr) {
    }
    return ::closedir(stream) == 0 ? 0 : errno;
  }
  static int make(const std::string& path) {
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
    return file >= 0 && ::close(file) == 0 ? 0 : errno;
  }
  static int miss(const std::string& path) {
    return ::access(path.c_str(), F_OK) == -1 && errno == ENOENT ? 0 : 1;
  }
  [[nodiscard]] std::uint64_t made_in(const std::string& directory) const {
    return static_cast<std::uint64_t>(std::distance(
        fs::directory_iterator(mount_->below() / directory), fs::directory_iterator()));
  }

  std::optional<MountProcess> mount_;
  std::deque<CallOf> floods_;
};

// Its limit lets an operation go each second, and every thread waits for the lock.
TEST_P(MountLocks, OfAUserThatIsHeldStallNoOtherForLong) {
  mount(1);
  flood("shared", 32);
  const fs::path shared = mount_->path() / "shared";
  const std::string name = shared / "alice";
  EXPECT_LT(time_of(kAlice, [name] { return make(name); }), kTwoHolds + kSlack);
  const std::string directory = shared;
  EXPECT_LT(time_of(kAlice, [directory] { return list(directory); }), kSlack) << "alice was seen";
  const std::string nothing = shared / "nothing";
  EXPECT_LT(time_of(kAlice, [nothing] { return miss(nothing); }), kSlack);
  EXPECT_LT(time_of(kAlice, [name] { return ::unlink(name.c_str()) == 0 ? 0 : errno; }), kSlack);
}

// Alone, a user has what its limit allows.
TEST_P(MountLocks, OfAUserAloneKeepItsLimit) {
  mount(40);
  flood("own", 4);
  std::this_thread::sleep_for(1s);
  const std::uint64_t before = made_in("own");
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(3s);
  const std::uint64_t made = made_in("own") - before;
  const auto passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_LT(static_cast<double>(made), 20 * passed + 8);
  EXPECT_GT(made, 20U);
}

// What passed beyond the limit is owed: an open, which keeps no lock, waits for it.
TEST_P(MountLocks, LeaveADebtBehind) {
  mount(2);
  const std::string file = mount_->path() / "own" / "file";
  ASSERT_EQ(time_of(kAlice, [file] { return make(file); }) < kSlack, true);
  flood("shared", 4);
  const std::string directory = mount_->path() / "shared";
  for (int i = 0; i < 4; ++i) {
    EXPECT_LT(time_of(kAlice, [directory] { return list(directory); }), kTwoHolds + kSlack);
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_GT(made_in("shared"), 20U) << "not held beside alice";
  for (CallOf& each : floods_) each.kill();
  floods_.clear();
  CallOf opens(kMallory, [file] { return ::open(file.c_str(), O_RDONLY) >= 0 ? 0 : errno; });
  EXPECT_EQ(opens.result(3s), std::nullopt);
  opens.kill();
  EXPECT_EQ(opens.result(5s), -1);
}

INSTANTIATE_TEST_SUITE_P(Policies, MountLocks, ::testing::Values("tbf", "sfq"),
                         [](const auto& policy) { return std::string(policy.param); });

}  // namespace
}  // namespace vpfs::test
