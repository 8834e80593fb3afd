// vpfs-bench-beegfs-storage: a BeeGFS storage server without BeeGFS, for benchmarks and the demo.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <fmt/format.h>

#include "base/command_line.h"
#include "base/log/log.h"
#include "base/units.h"
#include "dataserver/beegfs/storage.h"
#include "net/socket_options.h"

namespace {

using namespace vpfs;
using namespace vpfs::dataserver;

struct Options {
  std::uint16_t port = 0;
  bool any_address = false;
  std::vector<std::uint16_t> targets = {101};
  std::string bandwidth;
  std::string per_request = "0";
  std::uint64_t parallelism = 1;
  std::string capacity = "8 GiB";
};

void add_options(const Command& app, Options& options) {
  app.add_option("--port", options.port, "port of 127.0.0.1 (0: a free one)");
  app.add_flag("--any-address", options.any_address, "listen at all addresses of this host");
  app.add_option("--targets", options.targets, "their numbers: 101,102").separated_by_commas();
  app.add_option("--bandwidth", options.bandwidth,
                 "of the device behind each target: 200 MiB/s (default: as fast as memory)");
  app.add_option("--per-request", options.per_request, "time of each request at the device: 50 us");
  app.add_option("--parallelism", options.parallelism, "requests that a device works on at once");
  app.add_option("--capacity", options.capacity, "of all targets together");
}

Result<StorageSettings> settings_of(const Options& options) {
  StorageSettings settings{.port = options.port,
                           .any_address = options.any_address,
                           .targets = options.targets,
                           .record = false};
  const Result<Bytes> capacity = parse_bytes(options.capacity);
  if (!capacity) return fail("--capacity: " + capacity.error().message);
  settings.capacity = *capacity;
  if (options.bandwidth.empty()) return settings;

  const Result<BytesPerSecond> bandwidth = parse_rate(options.bandwidth);
  if (!bandwidth) return fail("--bandwidth: " + bandwidth.error().message);
  const Result<Duration> per_request = parse_duration(options.per_request);
  if (!per_request) return fail("--per-request: " + per_request.error().message);
  if (bandwidth->count == 0 || options.parallelism == 0) {
    return fail("--bandwidth and --parallelism must be positive");
  }
  settings.device = {
      .bandwidth = *bandwidth, .per_request = *per_request, .parallelism = options.parallelism};
  return settings;
}

int run(const Options& options) {
  if (const auto logging = set_up_logging("vpfs-bench-beegfs-storage", "warn"); !logging) {
    fmt::print(stderr, "{}\n", logging.error().message);
    return kBadUsage;
  }
  Result<StorageSettings> settings = settings_of(options);
  if (!settings) {
    fmt::print(stderr, "vpfs-bench-beegfs-storage: {}\n", settings.error().message);
    return kBadUsage;
  }
  (void)net::raise_open_file_limit();
  net::ignore_broken_pipes();
  asio::io_context loop(1);
  asio::signal_set signals(loop, SIGTERM, SIGINT);
  signals.async_wait([](std::error_code, int) {});
  BeegfsStorage storage(std::move(*settings));
  fmt::print("ready on 127.0.0.1:{}\n", storage.port());
  (void)std::fflush(stdout);
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  OptionParser app("A BeeGFS storage server without BeeGFS, its chunk files in memory");
  add_options(app, options);
  if (const auto code = app.parse(argc, argv)) return *code == 0 ? 0 : kBadUsage;
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "vpfs-bench-beegfs-storage: {}\n", error.what());
    return 1;
  }
}
