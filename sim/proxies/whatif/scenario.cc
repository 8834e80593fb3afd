#include "sim/proxies/whatif/scenario.h"

#include <set>

#include <fmt/format.h>

#include "base/pipe.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongest = std::chrono::hours(24);
constexpr Bytes kLargestRequest = {kGiB};
constexpr Bytes kLargestFile = {1024 * kGiB};
constexpr std::uint64_t kMostId = 0xffffffff;
constexpr std::uint64_t kMostServers = 10'000;
// Points of the course over time, which a run keeps in memory.
constexpr std::int64_t kMostIntervals = 100'000;

void read_burst(ConfigReader& reader, SimulatedApplication& application) {
  if (!reader.has("burst")) return;
  ConfigReader section = reader.child("burst");
  SimulatedApplication::Burst burst;
  section.require("length");
  section.require("interval");
  section.get("length", &burst.length, 1us, kLongest);
  section.get("interval", &burst.interval, 1us, kLongest);
  if (burst.length > burst.interval) section.report("length", "is longer than the interval");
  application.burst = burst;
}

void read_recorded(ConfigReader& reader, SimulatedApplication& application) {
  application.arrivals = SimulatedApplication::Arrivals::recorded;
  reader.require("recording");
  reader.get("recording", &application.recording);
  application.recorded_name = application.name;
  reader.get("recorded_name", &application.recorded_name);
  for (const char* const key : {"rate", "burst"}) {
    if (reader.has(key)) reader.report(key, "is not for arrivals: recorded");
  }
}

void read_arrivals(ConfigReader& reader, SimulatedApplication& application) {
  std::string arrivals = "closed";
  reader.choose("arrivals", &arrivals, {"closed", "even", "random", "recorded"});
  if (arrivals != "recorded") {
    for (const char* const key : {"recording", "recorded_name"}) {
      if (reader.has(key)) reader.report(key, "is for arrivals: recorded");
    }
  }
  if (arrivals == "closed") {
    reader.get("outstanding", &application.outstanding, 1, 100'000);
    reader.get("think", &application.think, 0ns, kLongest);
    if (reader.has("rate")) reader.report("rate", "is for arrivals: even or random");
    return;
  }
  for (const char* const key : {"outstanding", "think"}) {
    if (reader.has(key)) reader.report(key, "is for arrivals: closed");
  }
  if (arrivals == "recorded") return read_recorded(reader, application);
  application.arrivals = arrivals == "even" ? SimulatedApplication::Arrivals::even
                                            : SimulatedApplication::Arrivals::random;
  std::uint64_t rate = 1;
  reader.require("rate");
  reader.get("rate", &rate, 1, 10'000'000);
  application.between = Duration(std::chrono::seconds(1)) / static_cast<std::int64_t>(rate);
}

// The servers that its files are on.
void read_places(ConfigReader& reader, const Scenario& scenario,
                 SimulatedApplication& application) {
  ConfigReader section = reader.child("servers");
  section.get("first", &application.first_server, 0, scenario.servers - 1);
  application.servers = scenario.servers - application.first_server;
  section.get("count", &application.servers, 1, application.servers);
  reader.get("datafiles", &application.datafiles, 0, kMostServers);
  if (application.datafiles > application.servers) {
    reader.report("datafiles", fmt::format("is more than the {} servers", application.servers));
  }
}

SimulatedApplication read_application(ConfigReader& reader, const Scenario& scenario) {
  SimulatedApplication application;
  reader.require("name");
  reader.get("name", &application.name);
  application.jobid = application.name;
  reader.get("jobid", &application.jobid);
  std::uint64_t uid = 0;
  reader.get("uid", &uid, 0, kMostId);
  application.uid = static_cast<std::uint32_t>(uid);
  std::string client;
  if (reader.get("client", &client)) {
    if (const auto address = stage::Address::parse(client)) {
      application.client = *address;
    } else {
      reader.report("client", fmt::format("'{}' is not an IP address", client));
    }
  }
  reader.get("processes", &application.processes, 1, 100'000);
  read_arrivals(reader, application);
  reader.get("size", &application.size, {1}, kLargestRequest);
  reader.get("read_percent", &application.read_percent, 0, 100);
  std::string pattern = "sequential";
  reader.choose("pattern", &pattern, {"sequential", "random"});
  application.random_places = pattern == "random";
  reader.get("file_size", &application.file_size, {1}, kLargestFile);
  if (application.file_size < application.size) {
    reader.report("file_size", "is smaller than one request");
  }
  read_places(reader, scenario, application);
  reader.get("start", &application.start, 0ns, kLongest);
  Duration stop = {};
  if (reader.get("stop", &stop, 0ns, kLongest)) {
    application.stop = stop;
    if (stop <= application.start)
      reader.report("stop", "is too early: expected a time after `start`");
  }
  read_burst(reader, application);
  return application;
}

void read_servers(ConfigReader reader, Scenario& scenario) {
  reader.get("count", &scenario.servers, 1, kMostServers);
  reader.get("strip_size", &scenario.strip_size, {1}, {kGiB});
  reader.get("flow_buffer_size", &scenario.flow_buffer_size, {4 * kKiB}, {kGiB});
  reader.get("round_trip", &scenario.round_trip, 0ns, kLongest);
  ConfigReader device = reader.child("device");
  reader.require("device");
  device.require("bandwidth");
  device.get("bandwidth", &scenario.device.bandwidth, {1}, {Pipe::kMostPerSecond});
  device.get("per_request", &scenario.device.per_request, 0ns, std::chrono::seconds(60));
  device.get("parallelism", &scenario.device.parallelism, 1, 1024);
}

void read_absence(ConfigReader& reader, CoordinatorSettings& coordinator) {
  if (!reader.has("away")) return;
  ConfigReader section = reader.child("away");
  Absence away;
  section.require("from");
  section.require("until");
  section.get("from", &away.from, 0ns, kLongest);
  section.get("until", &away.until, 0ns, kLongest);
  if (away.until < away.from + coordinator.period) {
    section.report("until", "is not a period after `from`");
  }
  coordinator.away = away;
}

void read_coordinator(ConfigReader reader, Scenario& scenario) {
  CoordinatorSettings coordinator;
  std::string policy = "total";
  reader.choose("policy", &policy, {"total", "psfa"});
  coordinator.policy = allocation::find_policy(policy);
  reader.get("period", &coordinator.period, 1ms, std::chrono::hours(1));
  reader.get("lease", &coordinator.lease, 1ms, kLongest);
  reader.get("transit", &coordinator.transit, 0ns, kLongest);
  reader.get("round_trip", &coordinator.round_trip, 0ns, kLongest);
  if (coordinator.lease <= coordinator.period) reader.report("lease", "is not above the period");
  if (coordinator.round_trip >= coordinator.period) {
    reader.report("round_trip", "is not below the period");
  }
  for (const char* const key : {"capacity", "floor"}) {
    if (reader.has(key) && !coordinator.policy->needs_caps) {
      reader.report(key, "is for policy: psfa");
    }
  }
  BytesPerSecond capacity;
  BytesPerSecond floor;
  if (coordinator.policy->needs_caps) {
    reader.require("capacity");
    reader.get("capacity", &capacity, {1}, {Pipe::kMostPerSecond});
    reader.get("floor", &floor, {1}, {Pipe::kMostPerSecond});
  }
  coordinator.amounts.capacity.bytes = capacity.count;
  coordinator.amounts.floor.bytes = floor.count;
  read_absence(reader, coordinator);
  scenario.coordinator = coordinator;
}

// Closed loops. With other arrivals it is the run that shows how many requests are under way.
void check_memory(ConfigReader& reader, const Scenario& scenario) {
  std::uint64_t outstanding = 0;
  for (const SimulatedApplication& each : scenario.applications) {
    if (each.arrivals != SimulatedApplication::Arrivals::closed) continue;
    outstanding += each.processes * each.outstanding;
  }
  if (outstanding > Scenario::kMostUnderWay) {
    reader.report("applications", fmt::format("have {} requests under way; at most {} are possible",
                                              outstanding, Scenario::kMostUnderWay));
  }
  if (scenario.duration / scenario.interval > kMostIntervals) {
    reader.report("interval", fmt::format("gives more than {} points", kMostIntervals));
  }
}

}  // namespace

Scenario read_scenario(std::string_view text, ConfigErrors& errors) {
  Scenario scenario;
  ConfigReader reader(text, errors);
  reader.require("configuration");
  reader.get("configuration", &scenario.configuration);
  reader.require("servers");
  read_servers(reader.child("servers"), scenario);
  reader.get("duration", &scenario.duration, 1ms, kLongest);
  reader.get("warm_up", &scenario.warm_up, 0ns, kLongest);
  reader.get("interval", &scenario.interval, 1ms, kLongest);
  reader.get("seed", &scenario.seed, 0, ~std::uint64_t{0});
  if (reader.has("coordinator")) read_coordinator(reader.child("coordinator"), scenario);
  reader.require("applications");
  std::set<std::string> names;
  const bool is_list = reader.for_each("applications", [&](ConfigReader& each) {
    scenario.applications.push_back(read_application(each, scenario));
    const std::string& name = scenario.applications.back().name;
    if (!names.insert(name).second) each.report("name", fmt::format("'{}' is listed twice", name));
  });
  if (is_list && scenario.applications.empty()) {
    reader.report("applications", "must name at least one");
  }
  check_memory(reader, scenario);
  return scenario;
}

}  // namespace vpfs::sim
