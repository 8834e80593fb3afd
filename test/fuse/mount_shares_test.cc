// Shares of what is mounted, by the wall clock. Below a mounted directory is another mount that
// lets 100 MiB/s pass, and behind a mounted OrangeFS a server with a model of such a device. So
// they are the same on every machine.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "test/fuse/mount_process.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

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
             const std::string& size, const std::string& file_size = "64m") {
  return Process({"fio", "--name=" + job, "--directory=" + mount.path().string(), "--rw=" + rw,
                  "--bs=" + size, "--size=" + file_size, "--numjobs=16", "--direct=1",
                  "--ioengine=psync", "--filename_format=$jobname.$jobnum", "--time_based",
                  "--runtime=30", "--thread", "--fallocate=none", "--group_reporting"},
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
void make_files(const std::filesystem::path& directory, std::uintmax_t size = 64U << 20) {
  for (const std::string job : {"three", "one"}) {
    for (int i = 0; i < 16; ++i) {
      const std::filesystem::path file = directory / (job + "." + std::to_string(i));
      std::ofstream(file).close();
      std::filesystem::resize_file(file, size);
    }
  }
}

// Expects 3:1 of what the status counts, once both loads run.
void watch(const std::function<nlohmann::json()>& status) {
  ASSERT_TRUE(comes_true([&] {
    const nlohmann::json now = status();
    return bytes_of(now, "three") > (8U << 20) && bytes_of(now, "one") > (8U << 20);
  }));
  const nlohmann::json before = status();
  std::this_thread::sleep_for(6s);
  const nlohmann::json after = status();
  const auto moved = [&](const std::string& name) {
    return static_cast<double>(bytes_of(after, name) - bytes_of(before, name));
  };
  EXPECT_GT(moved("three") + moved("one"), 6 * 80.0 * (1U << 20)) << "the device is kept busy";
  EXPECT_NEAR(moved("three") / moved("one"), 3.0, 0.09);
}

void expect_three_to_one(const std::string& rw, const std::string& size) {
  const MountProcess device({.config = kDevice});
  make_files(device.below());
  MountProcess mount({.config = kShares, .below = device.path()});
  Process three = load(mount, "three", rw, size);
  Process one = load(mount, "one", rw, size);
  watch([&] { return mount.status(); });
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

// A server with a device of 100 MiB/s behind a proxy.
class MountOrangefsShares : public MountTest {
 protected:
  MountOrangefsShares()
      : proxy_({.upstream = port_.number(),
                .depth = 4,
                .scheduler = "cost: {per_request: 0}",
                .virtual_pfs = "three: {weight: 3}, one: {weight: 1}, default: {weight: 1}",
                .rules = "[{match: {jobid: three}, virtual_pfs: three}, "
                         "{match: {jobid: one}, virtual_pfs: one}]"}),
        server_({program("vpfs-server"), "--config",
                 directory_.write("server.yaml",
                                  "file_system: {name: vpfs, id: 1234}\n"
                                  "servers: [{alias: s0, addresses: ['tcp://" +
                                      port_.address() +
                                      "', 'tcp-px://127.0.0.1:" + std::to_string(proxy_.port()) +
                                      "']}]\n"
                                      "storage: {engine: memory, capacity: 1 GiB}\n"
                                      "device: {bandwidth: 100 MiB/s}\n")}) {
    EXPECT_TRUE(server_.wait_for_line("ready on")) << server_.errors();
  }

  [[nodiscard]] MountProcess::Settings settings(std::vector<std::string> options = {}) const {
    MountProcess::Settings wanted;
    wanted.options = std::move(options);
    wanted.address = "tcp-px://127.0.0.1:" + std::to_string(proxy_.port()) + "/vpfs";
    return wanted;
  }
  void expect_three_to_one(const MountProcess& for_three, const MountProcess& for_one,
                           const std::string& rw, const std::string& size) {
    make_files(for_three.path(), 16U << 20);
    Process three = load(for_three, "three", rw, size, "16m");
    Process one = load(for_one, "one", rw, size, "16m");
    watch([&] { return proxy_.status(); });
    (void)three.kill();
    (void)one.kill();
  }

 private:
  TemporaryDirectory directory_;
  ReservedPort port_;
  ProxyProcess proxy_;
  Process server_;
};

TEST_F(MountOrangefsShares, OfJobsOnOneMountAreThreeToOneForLargeWrites) {
  const MountProcess mount(settings());
  expect_three_to_one(mount, mount, "write", "1m");
}

TEST_F(MountOrangefsShares, OfJobsOnOneMountAreThreeToOneForLargeReads) {
  const MountProcess mount(settings());
  expect_three_to_one(mount, mount, "read", "1m");
}

TEST_F(MountOrangefsShares, OfTwoMountsAreThreeToOneForAMixtureOfSmallRequests) {
  const MountProcess three(settings({"jobid=three"}));
  const MountProcess one(settings({"jobid=one"}));
  expect_three_to_one(three, one, "randrw", "64k");
}

}  // namespace
}  // namespace vpfs::test
