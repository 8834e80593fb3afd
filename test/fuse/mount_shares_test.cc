// Shares of a mounted directory, by the wall clock. The directory below is another mount that lets
// 100 MiB/s pass, so it is the same on every machine.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>

#include "test/fuse/mount_process.h"

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using MountShares = MountTest;

constexpr const char* kDevice = R"(
scheduler: {policy: tbf, cost: {per_request: 0}}
virtual_pfs: {default: {rate: 100 MiB/s, burst: 4 MiB}}
)";
constexpr const char* kShares = R"(
mount: {status_file: "{status_file}"}
scheduler: {policy: sfq, depth: {requests: 4, bytes: 1 GiB}, cost: {per_request: 0}}
virtual_pfs: {three: {weight: 3}, one: {weight: 1}, default: {weight: 1}}
rules:
  - match: {jobid: three}
    virtual_pfs: three
  - match: {jobid: one}
    virtual_pfs: one
)";

Process load(const MountProcess& mount, const std::string& job, const std::string& rw,
             const std::string& size) {
  return Process({"fio", "--name=" + job, "--directory=" + mount.path().string(), "--rw=" + rw,
                  "--bs=" + size, "--size=64m", "--numjobs=16", "--direct=1", "--ioengine=psync",
                  "--filename_format=$jobname.$jobnum", "--time_based", "--runtime=30", "--thread",
                  "--fallocate=none", "--group_reporting"},
                 {{"SLURM_JOB_ID", job}});
}

std::uint64_t bytes_of(const nlohmann::json& status, const std::string& name) {
  for (const nlohmann::json& each : status["virtual_pfs"]) {
    if (each["name"] == name) {
      return each["done_bytes"].get<std::uint64_t>();
    }
  }
  return 0;
}

// With a file for each thread of the load, which would make them one after the other.
void make_files(const std::filesystem::path& directory) {
  for (const std::string job : {"three", "one"}) {
    for (int i = 0; i < 16; ++i) {
      const std::filesystem::path file = directory / (job + "." + std::to_string(i));
      std::ofstream(file).close();
      std::filesystem::resize_file(file, 64U << 20);
    }
  }
}

void expect_three_to_one(const std::string& rw, const std::string& size) {
  const MountProcess device({.config = kDevice});
  make_files(device.below());
  MountProcess mount({.config = kShares, .below = device.path()});
  Process three = load(mount, "three", rw, size);
  Process one = load(mount, "one", rw, size);
  ASSERT_TRUE(comes_true([&] {
    const nlohmann::json status = mount.status();
    return bytes_of(status, "three") > (8U << 20) && bytes_of(status, "one") > (8U << 20);
  }));
  const nlohmann::json before = mount.status();
  std::this_thread::sleep_for(6s);
  const nlohmann::json after = mount.status();
  const auto moved = [&](const std::string& name) {
    return static_cast<double>(bytes_of(after, name) - bytes_of(before, name));
  };
  EXPECT_GT(moved("three") + moved("one"), 6 * 80.0 * (1U << 20)) << "the device is kept busy";
  EXPECT_NEAR(moved("three") / moved("one"), 3.0, 0.09);
  (void)three.kill();
  (void)one.kill();
}

TEST_F(MountShares, AreThreeToOneForLargeWrites) {
  expect_three_to_one("write", "1m");
}

TEST_F(MountShares, AreThreeToOneForLargeReads) {
  expect_three_to_one("read", "1m");
}

TEST_F(MountShares, AreThreeToOneForAMixtureOfSmallRequests) {
  expect_three_to_one("randrw", "64k");
}

}  // namespace
}  // namespace vpfs::test
