// Shares of what is mounted, by the wall clock. Below a mounted directory is another mount that
// lets 100 MiB/s pass, and behind a mounted OrangeFS a server with a model of such a device. So
// they are the same on every machine. For requests of 4 KiB the device has 4 MiB/s, and is what
// limits them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/fuse/mount_process.h"
#include "test/support/clock/by_clock.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using MountShares = MountTest;

constexpr unsigned kRate = 100;  // MiB/s
constexpr unsigned kSlowRate = 4;

std::string device_of(unsigned rate) {
  return fmt::format(
      "scheduler: {{policy: tbf, cost: {{per_request: 0}}}}\n"
      "virtual_pfs: {{default: {{rate: {} MiB/s, burst: {} MiB}}}}\n",
      rate, std::max(1U, rate / 25));
}

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
                  "--bs=" + size, "--size=4m", "--numjobs=16", "--direct=1", "--ioengine=psync",
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

// With a file for each thread of the load, which would make them one after the other. On a disk
// they have data, since it takes long to forget files of many pieces.
enum class Files { of_zeros, with_holes };
void make_files(const std::filesystem::path& directory, Files files) {
  const std::string zeros(4U << 20, '\0');
  for (const std::string job : {"three", "one"}) {
    for (int i = 0; i < 16; ++i) {
      const std::filesystem::path path = directory / (job + "." + std::to_string(i));
      std::ofstream file(path);
      if (files == Files::of_zeros) file << zeros;
      file.close();
      std::filesystem::resize_file(path, zeros.size());
    }
  }
}

// Expects 3:1 of what the status counts, once both loads run.
void watch(const std::function<nlohmann::json()>& status, unsigned rate = kRate) {
  const std::uint64_t begun = std::uint64_t{rate} * (1U << 20) / 12;
  ASSERT_TRUE(comes_true([&] {
    const nlohmann::json now = status();
    return bytes_of(now, "three") > begun && bytes_of(now, "one") > begun;
  }));
  const nlohmann::json before = status();
  // Long enough for hundreds of requests of each, whatever their size.
  const int seconds = rate == kRate ? 6 : 3;
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const nlohmann::json after = status();
  const auto moved = [&](const std::string& name) {
    return static_cast<double>(bytes_of(after, name) - bytes_of(before, name));
  };
  EXPECT_GT(moved("three") + moved("one"), seconds * 0.8 * rate * (1U << 20))
      << "the device is kept busy" << kByClock;
  EXPECT_NEAR(moved("three") / moved("one"), 3.0, 0.09) << kByClock;
}

void expect_three_to_one(const std::string& rw, const std::string& size, unsigned rate = kRate) {
  const MountProcess device({.config = device_of(rate)});
  make_files(device.below(), Files::of_zeros);
  MountProcess mount({.config = kShares, .below = device.path()});
  Process three = load(mount, "three", rw, size);
  Process one = load(mount, "one", rw, size);
  watch([&] { return mount.status(); }, rate);
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

TEST_F(MountShares, AreThreeToOneForRequestsOf4KiBAtRandomPlaces) {
  expect_three_to_one("randrw", "4k", kSlowRate);
}

// A server with a device of so many MiB/s behind a proxy.
class MountOrangefsShares : public MountTest {
 protected:
  explicit MountOrangefsShares(unsigned rate = kRate)
      : rate_(rate),
        proxy_({.upstream = port_.number(),
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
                                      "device: {bandwidth: " +
                                      std::to_string(rate) + " MiB/s}\n")}) {
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
    make_files(for_three.path(), Files::with_holes);
    Process three = load(for_three, "three", rw, size);
    Process one = load(for_one, "one", rw, size);
    watch([&] { return proxy_.status(); }, rate_);
    (void)three.kill();
    (void)one.kill();
  }

 private:
  const unsigned rate_;
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

TEST_F(MountOrangefsShares, OfJobsOnOneMountAreThreeToOneForAMixtureOfSmallRequests) {
  const MountProcess mount(settings());
  expect_three_to_one(mount, mount, "randrw", "64k");
}

TEST_F(MountOrangefsShares, OfTwoMountsAreThreeToOneForLargeWrites) {
  const MountProcess three(settings({"jobid=three"}));
  const MountProcess one(settings({"jobid=one"}));
  expect_three_to_one(three, one, "write", "1m");
}

TEST_F(MountOrangefsShares, OfTwoMountsAreThreeToOneForLargeReads) {
  const MountProcess three(settings({"jobid=three"}));
  const MountProcess one(settings({"jobid=one"}));
  expect_three_to_one(three, one, "read", "1m");
}

TEST_F(MountOrangefsShares, OfTwoMountsAreThreeToOneForAMixtureOfSmallRequests) {
  const MountProcess three(settings({"jobid=three"}));
  const MountProcess one(settings({"jobid=one"}));
  expect_three_to_one(three, one, "randrw", "64k");
}

class MountOrangefsSlowShares : public MountOrangefsShares {
 protected:
  MountOrangefsSlowShares() : MountOrangefsShares(kSlowRate) {}
};

TEST_F(MountOrangefsSlowShares, OfJobsOnOneMountAreThreeToOneForRequestsOf4KiB) {
  const MountProcess mount(settings());
  expect_three_to_one(mount, mount, "randrw", "4k");
}

TEST_F(MountOrangefsSlowShares, OfTwoMountsAreThreeToOneForRequestsOf4KiB) {
  const MountProcess three(settings({"jobid=three"}));
  const MountProcess one(settings({"jobid=one"}));
  expect_three_to_one(three, one, "randrw", "4k");
}

}  // namespace
}  // namespace vpfs::test
