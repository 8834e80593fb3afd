// Many hand-overs of a mount under load whose every byte is checked: no process notices.
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/call_of.h"
#include "test/fuse/file_checker.h"
#include "test/fuse/mount_process.h"
#include "test/support/comes_true.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;

// A policy with a limit that is reached, so that some requests are held whenever it is frozen.
constexpr const char* kLoad = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
scheduler: {policy: sfq, depth: 4, schedule: [io, metadata]}
virtual_pfs: {limited: {rate: 60 MiB/s}, default: {}}
rules:
  - match: {uid: 0}
    virtual_pfs: limited
)";

// Makes, renames, lists and removes names, and knows which there are.
int change_names(const fs::path& directory, const fs::path& stop) {
  fs::create_directory(directory);
  for (int round = 0; !fs::exists(stop); ++round) {
    const std::string name = directory / fmt::format("n{}", round);
    const std::string other = directory / fmt::format("m{}", round);
    const int file = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0 || ::write(file, "name", 4) != 4) return 1;
    if (::rename(name.c_str(), other.c_str()) != 0 || ::close(file) != 0) return 2;
    if (::mkdir(name.c_str(), 0755) != 0 || ::rmdir(name.c_str()) != 0) return 3;
    if (::symlink("target", name.c_str()) != 0) return 4;
    std::size_t entries = 0;
    for (const auto& each : fs::directory_iterator(directory))
      entries += each.path().empty() ? 0 : 1;
    if (entries != 2) return 5;
    if (read_text(other) != "name" || fs::read_symlink(name) != "target") return 6;
    if (::unlink(other.c_str()) != 0 || ::unlink(name.c_str()) != 0) return 7;
    struct stat now = {};
    if (::stat(other.c_str(), &now) == 0 || errno != ENOENT) return 8;
  }
  return 0;
}

int check_files(const FileChecker::File& file, std::uint64_t seed, const fs::path& stop) {
  FileChecker checker(file, seed);
  while (!fs::exists(stop) && !::testing::Test::HasFailure()) checker.run(20);
  return ::testing::Test::HasFailure() ? 1 : 0;
}

class MountUpgradeLoad : public MountTest {};

TEST_F(MountUpgradeLoad, TwentyHandOversInARowAreNotNoticed) {
  const char* const wanted = std::getenv("VPFS_HAND_OVERS");
  const int hand_overs = wanted == nullptr ? 20 : std::atoi(wanted);
  MountProcess mount({.config = kLoad});
  const fs::path stop = mount.scratch() / "stop";
  std::vector<std::pair<std::string, CallOf>> calls;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::string name = fmt::format("data{}", i);
    calls.emplace_back(name, CallOf(0, [&mount, name, i, stop] {
                         return check_files(
                             {.path = mount.path() / name, .elsewhere = mount.below() / name}, i,
                             stop);
                       }));
  }
  for (int i = 0; i < 2; ++i) {
    const fs::path directory = mount.path() / fmt::format("names{}", i);
    calls.emplace_back(directory,
                       CallOf(0, [directory, stop] { return change_names(directory, stop); }));
  }
  std::vector<Process> olds;
  for (int i = 0; i < hand_overs; ++i) {
    olds.push_back(mount.hand_over());
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  std::ofstream(stop.string()) << "now";
  for (auto& [name, call] : calls) EXPECT_EQ(call.result(std::chrono::seconds(60)), 0) << name;
  for (Process& old : olds) {
    const auto exit = old.wait(std::chrono::seconds(30));
    ASSERT_TRUE(exit) << old.errors();
    EXPECT_TRUE(exit->ok()) << "signal " << exit->signal << old.errors();
  }
  const nlohmann::json status = mount.idle_status();
  for (const auto& row : status["virtual_pfs"]) EXPECT_EQ(row["failed_requests"], 0) << row.dump();
  // Nothing is known too often, and nothing is forgotten that is known.
  EXPECT_TRUE(comes_true([&] {
    std::ofstream("/proc/sys/vm/drop_caches") << 2;
    const nlohmann::json now = mount.status();
    return now["known_objects"] == 1 && now["open_files"] == 0 && now["busy_threads"] == 0;
  })) << mount.status().dump();
}

}  // namespace
}  // namespace vpfs::test
