// What is behind a mount is killed while fio writes blocks with checksums: a mount, a proxy, a
// server. Every block that fio was told is written is there afterwards, and is right.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "test/fuse/mount_site.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;

class MountVerifiedFaults : public EveryMountTest {
 protected:
  void SetUp() override {
    EveryMountTest::SetUp();
    if (IsSkipped()) return;
    Process fio({"fio", "--version"});
    const auto exit = fio.wait();
    if (!exit || !exit->ok()) GTEST_SKIP() << "there is no fio";
  }

  // Blocks of 4 KiB at random places, four at a time. So slowly that no place gets a second one
  // before the kill: fio's state can tell only one from none.
  [[nodiscard]] std::vector<std::string> fio(const MountProcess& mount, const std::string& name,
                                             const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"fio",
                                        "--name=" + name,
                                        "--directory=" + mount.path().string(),
                                        "--aux-path=" + scratch_.path().string(),
                                        "--rw=randwrite",
                                        "--bs=4k",
                                        "--size=64m",
                                        "--ioengine=libaio",
                                        "--iodepth=4",
                                        is_orangefs() ? "--direct=1" : "--direct=0",
                                        "--verify=crc32c",
                                        "--verify_fatal=1",
                                        "--fallocate=none",
                                        "--output-format=json"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  [[nodiscard]] Process writer(const MountProcess& mount, const std::string& name,
                               const std::string& seconds) const {
    // The file has its whole size: else fio would fill it before it verifies.
    const fs::path file = mount.path() / (name + ".0.0");
    std::ofstream(file).close();
    fs::resize_file(file, 64U << 20);
    return Process(fio(mount, name,
                       {"--time_based", "--runtime=" + seconds, "--rate_iops=2000", "--do_verify=0",
                        "--verify_state_save=1"}));
  }
  // Reads what the writer of that name had written, and returns how many blocks there were. Those
  // of which it was told that they failed may be old or new.
  [[nodiscard]] long verify(const MountProcess& mount, const std::string& name,
                            const std::set<std::string>& failed = {}) const {
    Process reader(fio(mount, name,
                       {"--verify_only", "--verify_state_load=1", "--verify_fatal=0",
                        "--continue_on_error=verify"}));
    const auto exit = reader.wait(60s);
    EXPECT_TRUE(exit && (exit->ok() || !failed.empty())) << reader.errors();
    EXPECT_THAT(failed, ::testing::IsSupersetOf(offsets_in(reader.errors(), " offset ")));
    return operations(reader, "read");
  }
  // The numbers behind a word.
  static std::set<std::string> offsets_in(const std::string& text, const std::string& word) {
    std::set<std::string> found;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
      at += word.size();
      found.insert(text.substr(at, text.find(',', at) - at));
    }
    return found;
  }
  static long operations(const Process& fio, const std::string& kind) {
    const std::string text = fio.output();
    const nlohmann::json results =
        nlohmann::json::parse(text.substr(std::min(text.find('{'), text.size())), nullptr, false);
    if (results.is_discarded()) return -1;
    return results["jobs"][0][kind]["total_ios"].get<long>();
  }
  // A mount point can be looked at, whatever it says.
  static void expect_no_hang(const fs::path& path) {
    Process look({"stat", "-f", path});
    EXPECT_TRUE(look.wait(5s)) << path << " hangs";
  }

  // A run that faults do not end. `fault` happens twice meanwhile.
  void expect_to_last(const MountSite& site, const std::function<void()>& fault) {
    const MountProcess mount(site.settings());
    Process load = writer(mount, "lasting", "3");
    Process checker(fio(mount, "checking",
                        {"--size=2m", "--rw=randrw", "--time_based", "--runtime=3",
                         "--verify_backlog=64", "--rate_iops=1000"}));
    for (int i = 0; i < 2; ++i) {
      std::this_thread::sleep_for(700ms);
      ASSERT_TRUE(load.running() && checker.running()) << load.errors() << checker.errors();
      fault();
    }
    for (Process* each : {&load, &checker}) {
      const auto exit = each->wait(60s);
      EXPECT_TRUE(exit && exit->ok()) << each->errors();
    }
    const long written = operations(load, "write");
    EXPECT_GT(written, 50);
    const MountProcess other(site.settings());
    EXPECT_NEAR(static_cast<double>(verify(other, "lasting")), static_cast<double>(written), 8);
  }

  const TemporaryDirectory scratch_;
};
INSTANTIATE_TEST_SUITE_P(Mount, MountVerifiedFaults,
                         ::testing::Values(Backend::directory, Backend::embedded, Backend::real),
                         name_of_backend);

TEST_P(MountVerifiedFaults, AMountThatIsKilledHasWrittenWhatItSaid) {
  const MountSite site(GetParam());
  const MountProcess other(site.settings());
  Process untouched = writer(other, "untouched", "8");
  for (const std::string kept : {"auto_unmount", "noauto_unmount"}) {
    SCOPED_TRACE(kept);
    std::vector<std::string> options = {"allow_other"};
    if (kept == "noauto_unmount") options.push_back(kept);
    MountProcess mount(site.settings(options));
    Process load = writer(mount, kept, "30");
    std::this_thread::sleep_for(3s);
    ASSERT_TRUE(load.running()) << load.errors();
    mount.kill();
    const auto exit = load.wait(10s);
    ASSERT_TRUE(exit) << "it hangs";
    EXPECT_FALSE(exit->ok());
    expect_no_hang(mount.path());
    if (kept == "noauto_unmount") {
      EXPECT_TRUE(mount.is_mounted());
      Process unmount({"fusermount3", "-u", mount.path()});
      const auto unmounted = unmount.wait();
      EXPECT_TRUE(unmounted && unmounted->ok()) << unmount.errors();
    }
    EXPECT_TRUE(comes_true([&] { return !mount.is_mounted(); }));
    mount.start();
    const std::set<std::string> failed = offsets_in(load.errors(), "write offset=");
    EXPECT_LE(failed.size(), 4U) << "more than were under way";
    EXPECT_GT(verify(mount, kept, failed), 5);
    expect_no_hang(mount.path());
  }
  const auto exit = untouched.wait();
  EXPECT_TRUE(exit && exit->ok()) << untouched.errors();
  EXPECT_GT(verify(other, "untouched"), 50);
}

using MountLostBlock = MountVerifiedFaults;
INSTANTIATE_TEST_SUITE_P(Mount, MountLostBlock, ::testing::Values(Backend::embedded),
                         name_of_backend);

// That the check is able to fail.
TEST_P(MountLostBlock, IsFound) {
  const MountSite site(GetParam());
  const MountProcess mount(site.settings());
  Process load = writer(mount, "lossy", "3");
  const auto exit = load.wait();
  ASSERT_TRUE(exit && exit->ok()) << load.errors();
  ASSERT_GT(verify(mount, "lossy"), 100);
  const int file = ::open((mount.path() / "lossy.0.0").c_str(), O_RDWR);
  ASSERT_GE(file, 0);
  std::vector<char> block(4096);
  off_t at = 0;
  while (::pread(file, block.data(), block.size(), at) == 4096 && block[0] == 0) at += 4096;
  std::ranges::fill(block, '\0');
  ASSERT_EQ(::pwrite(file, block.data(), block.size(), at), 4096);
  ASSERT_EQ(::close(file), 0);
  Process reader(fio(mount, "lossy", {"--verify_only", "--verify_state_load=1"}));
  const auto failed = reader.wait();
  EXPECT_TRUE(failed && !failed->ok());
}

using MountOrangefsVerifiedFaults = MountVerifiedFaults;
INSTANTIATE_TEST_SUITE_P(Mount, MountOrangefsVerifiedFaults,
                         ::testing::Values(Backend::embedded, Backend::real), name_of_backend);

TEST_P(MountOrangefsVerifiedFaults, AServerThatIsKilledKeepsWhatItSaid) {
  MountSite site(GetParam(), MountSite::Faults::of_server);
  expect_to_last(site, [&] {
    site.kill_server();
    std::this_thread::sleep_for(200ms);
    site.start_server();
  });
}

TEST_P(MountOrangefsVerifiedFaults, AProxyThatIsKilledLosesNothing) {
  MountSite site(GetParam(), MountSite::Faults::of_proxy);
  expect_to_last(site, [&] {
    site.kill_proxy();
    std::this_thread::sleep_for(200ms);
    site.start_proxy();
  });
}

}  // namespace
}  // namespace vpfs::test
