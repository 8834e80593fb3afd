#include "tools/load/settings.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "tools/load/block_pattern.h"

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongest = std::chrono::hours(24);
constexpr std::int64_t kMostIntervals = 100'000;  // 24 h of a second each
constexpr Bytes kLargestRequest = {kGiB};
constexpr Bytes kLargestFile = {1024 * kGiB};
constexpr Bytes kLargestAmount = {1024 * 1024 * kGiB};
constexpr std::uint64_t kMostId = 0xffffffff;
// connMaxInternodeNum as the shipped configuration of clients has it.
constexpr std::uint64_t kBeegfsConnections = 12;

void read_burst(ConfigReader& reader, ApplicationSettings& application) {
  if (!reader.has("burst")) return;
  ConfigReader section = reader.child("burst");
  Burst burst;
  section.require("length");
  section.require("interval");
  section.get("length", &burst.length, 1ms, kLongest);
  section.get("interval", &burst.interval, 1ms, kLongest);
  if (burst.length > burst.interval) section.report("length", "is longer than the interval");
  application.burst = burst;
}

void check_sizes(ConfigReader& reader, const ApplicationSettings& application, bool verify) {
  if (application.file_size < application.size) {
    return reader.report("file_size", "is smaller than one request");
  }
  if (application.amount.count > 0 && application.amount < application.size) {
    reader.report("amount", "is smaller than one request");
  }
  if (!verify) return;
  const std::uint64_t size = application.size.count;
  if (size < kLeastBlock || size % block_size(size) != 0) {
    reader.report(
        "size", fmt::format("with verify: must be a multiple of {}, or from {} to {} bytes", kBlock,
                            kLeastBlock, kBlock));
  }
  if (application.file_size.count / size <= application.outstanding) {
    reader.report("file_size", "with verify: must hold more requests than are outstanding");
  }
}

void check_ends(ConfigReader& reader, const LoadSettings& settings) {
  if (!settings.until_done) return;
  for (const ApplicationSettings& each : settings.applications) {
    if (each.amount.count > 0 || each.stop) continue;
    reader.report("until_done",
                  fmt::format("'{}' does not end: expected an `amount` or a `stop`", each.name));
  }
}

bool is_beegfs(const LoadSettings& settings) {
  return std::holds_alternative<client::StorageAddress>(settings.mount);
}

void read_identity(ConfigReader& reader, const LoadSettings& settings,
                   ApplicationSettings& application) {
  application.jobid = application.name;
  reader.get("jobid", &application.jobid);
  std::uint64_t uid = settings.uid;
  reader.get("uid", &uid, 0, kMostId);
  application.uid = static_cast<std::uint32_t>(uid);
  reader.get("node", &application.node);
  if (!application.node.empty() && !is_beegfs(settings)) {
    reader.report("node", "is only for beegfs://...");
  }
  application.connections = is_beegfs(settings) ? kBeegfsConnections : 1;
  reader.get("connections", &application.connections, 1, 1000);
  for (const ApplicationSettings& other : settings.applications) {
    const bool shares = !application.node.empty() && other.node == application.node;
    if (shares && other.connections != application.connections) {
      reader.report("connections",
                    fmt::format("differs from that of {}, which is on the same node", other.name));
    }
  }
}

ApplicationSettings read_application(ConfigReader& reader, const LoadSettings& settings) {
  ApplicationSettings application;
  reader.require("name");
  reader.get("name", &application.name);
  read_identity(reader, settings, application);
  reader.get("processes", &application.processes, 1, 10000);
  reader.get("outstanding", &application.outstanding, 1, 100000);
  reader.get("size", &application.size, {1}, kLargestRequest);
  reader.get("read_percent", &application.read_percent, 0, 100);
  std::string pattern = "sequential";
  reader.choose("pattern", &pattern, {"sequential", "random"});
  application.pattern = pattern == "random" ? Pattern::random : Pattern::sequential;
  reader.get("file_size", &application.file_size, {1}, kLargestFile);
  reader.get("datafiles", &application.datafiles, 0, 10000);
  reader.get("servers", &application.servers);
  if (!application.servers.empty() && is_beegfs(settings)) {
    reader.report("servers", "is not for beegfs://..., which names the targets of one server");
  }
  reader.get("amount", &application.amount, {1}, kLargestAmount);
  reader.get("think", &application.think, 0ns, kLongest);
  reader.get("start", &application.start, 0ns, kLongest);
  Duration stop = {};
  if (reader.get("stop", &stop, 0ns, kLongest)) {
    application.stop = stop;
    if (stop <= application.start)
      reader.report("stop", "is too early: expected a time after `start`");
  }
  read_burst(reader, application);
  check_sizes(reader, application, settings.verify);
  return application;
}

void read_mount(ConfigReader& reader, const Overrides& overrides, LoadSettings& settings,
                ConfigErrors& errors) {
  if (!overrides.file_system) reader.require("file_system");
  reader.get("file_system", &settings.file_system);
  if (overrides.file_system) settings.file_system = *overrides.file_system;
  if (settings.file_system.empty()) return;
  const auto use = [&](auto address) {
    if (address) {
      settings.mount = std::move(*address);
    } else if (overrides.file_system) {
      errors.add_about("--file-system", address.error().message);
    } else {
      reader.report("file_system", address.error().message);
    }
  };
  if (settings.file_system.starts_with(client::kStorageScheme)) {
    use(client::parse_storage_address(settings.file_system));
  } else {
    use(client::parse_mount_address(settings.file_system));
  }
}

// Those of the command line have the bounds of the keys that they replace.
void read_times(ConfigReader& reader, const Overrides& overrides, LoadSettings& settings,
                ConfigErrors& errors) {
  const auto read = [&](const char* key, Duration* value, Duration least,
                        const std::optional<Duration>& given, std::string_view option) {
    reader.get(key, value, least, kLongest);
    if (!given) return;
    if (*given < least || *given > kLongest) {
      errors.add_about(option,
                       fmt::format("is out of range: {} to 24 h", least == 0ns ? "0 s" : "1 ms"));
    }
    *value = *given;
  };
  read("duration", &settings.duration, 1ms, overrides.duration, "--duration");
  read("warm_up", &settings.warm_up, 0ns, overrides.warm_up, "--warm-up");
  read("interval", &settings.interval, 1ms, overrides.interval, "--interval");
  if (settings.interval < 1ms || settings.duration / settings.interval <= kMostIntervals) return;
  const std::string problem = fmt::format("makes more than {} points of the run", kMostIntervals);
  if (overrides.interval || overrides.duration) {
    errors.add_about(overrides.interval ? "--interval" : "--duration", problem);
  } else {
    reader.report("interval", problem);
  }
}

}  // namespace

LoadSettings read_settings(std::string_view text, const Overrides& overrides,
                           ConfigErrors& errors) {
  LoadSettings settings;
  ConfigReader reader(text, errors);
  read_mount(reader, overrides, settings, errors);
  reader.get("directory", &settings.directory);
  read_times(reader, overrides, settings, errors);
  reader.get("until_done", &settings.until_done);
  reader.get("verify", &settings.verify);
  reader.get("keep_files", &settings.keep_files);
  reader.get("seed", &settings.seed, 0, ~std::uint64_t{0});
  reader.get("threads", &settings.threads, 1, 256);
  std::uint64_t id = 0;
  if (reader.get("uid", &id, 0, kMostId)) settings.uid = static_cast<std::uint32_t>(id);
  if (reader.get("gid", &id, 0, kMostId)) settings.gid = static_cast<std::uint32_t>(id);
  reader.require("applications");
  std::set<std::string> names;
  const bool is_list = reader.for_each("applications", [&](ConfigReader& each) {
    settings.applications.push_back(read_application(each, settings));
    const std::string& name = settings.applications.back().name;
    if (!names.insert(name).second) {
      each.report("name", fmt::format("'{}' is listed twice", name));
    }
  });
  if (is_list && settings.applications.empty()) {
    reader.report("applications", "must name at least one");
  }
  check_ends(reader, settings);
  return settings;
}

}  // namespace vpfs::load
