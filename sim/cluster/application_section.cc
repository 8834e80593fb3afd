#include "sim/cluster/application_section.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/cluster/words.h"

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMostApplications = 100'000;
constexpr std::uint64_t kMostTasks = kMostLinks;
constexpr std::uint64_t kMostSteps = 100'000;
constexpr std::uint64_t kMostMessagesToOne = 10'000;
constexpr std::uint64_t kAllSteps = 1000;  // what the parts add up to
constexpr Bytes kLargest = {1024 * kGiB};
constexpr Duration kLongestPhase = std::chrono::hours(24);
constexpr Duration kLongestGap = std::chrono::hours(1);  // so that no arrival overflows
// What a run keeps in memory: the drawn steps of an application, and what came of a communication.
constexpr std::uint64_t kMostStepsOfAll = 100'000'000;
constexpr std::uint64_t kMostMessages = 10'000'000;

std::uint32_t read_number(ConfigReader& reader, const char* key, std::uint64_t usual,
                          std::uint64_t least, std::uint64_t most) {
  reader.get(key, &usual, least, most);
  return static_cast<std::uint32_t>(usual);
}

// One value, or a mapping of the least and the most.
template <typename Value>
void read_range(ConfigReader& reader, const char* key, Value* least, Value* most, Value lowest,
                Value highest) {
  if (!reader.has(key) || reader.is_scalar(key)) {
    reader.get(key, least, lowest, highest);
    *most = *least;
    return;
  }
  ConfigReader range = reader.child(key);
  range.require("least");
  range.require("most");
  range.get("least", least, lowest, highest);
  *most = *least;
  range.get("most", most, *least, highest);
}

void read_range(ConfigReader& reader, const char* key, std::uint32_t* least, std::uint32_t* most,
                std::uint64_t highest) {
  std::uint64_t wide_least = 1;
  std::uint64_t wide_most = 1;
  reader.require(key);
  read_range<std::uint64_t>(reader, key, &wide_least, &wide_most, 1, highest);
  *least = static_cast<std::uint32_t>(wide_least);
  *most = static_cast<std::uint32_t>(wide_most);
}

void read_tasks(ConfigReader& reader, const ClusterDefaults& defaults,
                ClusterApplication& application) {
  const std::uint64_t nodes = defaults.nodes;
  Profile& least = application.least;
  Profile& most = application.most;
  read_range(reader, "tasks", &least.tasks, &most.tasks, kMostTasks);
  if (nodes > 0 && most.tasks > nodes) {
    reader.report("tasks", fmt::format("is {}, but the cluster has {} nodes", most.tasks, nodes));
  } else if (defaults.needs_others && most.tasks == nodes) {
    reader.report("tasks", "is all nodes, and place: external needs others");
  }
  application.all_do_io = !reader.has("io_tasks");
  least.io_tasks = read_number(reader, "io_tasks", least.tasks, 0, least.tasks);
}

// How many of a thousand steps are of which kind.
void read_parts(ConfigReader& reader, Profile& profile) {
  reader.require("per_mille");
  ConfigReader parts = reader.child("per_mille");
  profile.compute = read_number(parts, "compute", 0, 0, kAllSteps);
  profile.read = read_number(parts, "read", 0, 0, kAllSteps);
  profile.write = read_number(parts, "write", 0, 0, kAllSteps);
  const std::uint32_t communicate = read_number(parts, "communicate", 0, 0, kAllSteps);
  if (!parts.flawless() || !reader.has("per_mille")) return;
  const std::uint64_t all = profile.compute + profile.read + profile.write + communicate;
  if (all != kAllSteps) {
    reader.report("per_mille", fmt::format("adds up to {}, not to {}", all, kAllSteps));
  } else if (communicate > 0 && profile.tasks == 1) {
    parts.report("communicate", "a single task has no other task to send to");
  }
}

void check_memory(ConfigReader& reader, const Profile& profile) {
  const std::uint64_t steps = std::uint64_t{profile.tasks} * profile.steps;
  if (!profile.lockstep && steps > kMostStepsOfAll) {
    reader.report("steps", fmt::format("are {} of all tasks; at most {} are possible", steps,
                                       kMostStepsOfAll));
  }
  const bool goes_to_all =
      profile.pattern == Pattern::all_to_all || profile.pattern == Pattern::ring;
  const std::uint64_t messages =
      std::uint64_t{profile.tasks} * (goes_to_all ? profile.tasks - 1 : 1) * profile.messages;
  if (messages > kMostMessages) {
    reader.report("pattern", fmt::format("gives {} messages in a step; at most {} are possible",
                                         messages, kMostMessages));
  }
}

void read_sizes(ConfigReader& reader, Profile& least, Profile& most) {
  read_range(reader, "io_size", &least.io_bytes, &most.io_bytes, {1}, kLargest);
  read_range(reader, "data_size", &least.data_bytes, &most.data_bytes, {1}, kLargest);
  read_range(reader, "message_size", &least.message_bytes, &most.message_bytes, {1}, kLargest);
}

void read_profile(ConfigReader& reader, const ClusterDefaults& defaults,
                  ClusterApplication& application) {
  Profile& least = application.least;
  Profile& most = application.most;
  least.memory_percent = defaults.memory_percent;
  least.remote_percent = defaults.remote_percent;
  read_percent(reader, "memory_percent", &least.memory_percent);
  read_remote_percent(reader, defaults.has_remote, &least.remote_percent);
  reader.get("compute_time", &least.compute_time, 0ns, kLongestPhase);
  read_word(reader, "pattern", &least.pattern, kPatternWords);
  read_word(reader, "sizes", &least.sizes, kSizeWords);
  least.messages = read_number(reader, "messages", 1, 1, kMostMessagesToOne);
  least.least_io_percent = read_number(reader, "least_io_percent", 100, 1, 100);
  reader.get("lockstep", &least.lockstep);
  most = least;
  read_tasks(reader, defaults, application);
  read_range(reader, "steps", &least.steps, &most.steps, kMostSteps);
  read_parts(reader, least);
  read_sizes(reader, least, most);
  if (reader.flawless()) check_memory(reader, most);
}

void read_arrivals(ConfigReader& reader, ClusterApplication& application) {
  reader.get("start", &application.start, 0ns, kLongestPhase);
  reader.get("count", &application.count, 1, kMostApplications);
  if (application.count == 1) {
    for (const char* const key : {"every", "arrivals"}) {
      if (reader.has(key)) reader.report(key, "is for more than one application");
    }
    return;
  }
  reader.get("every", &application.every, 0ns, kLongestGap);
  std::string arrivals = "even";
  reader.choose("arrivals", &arrivals, {"even", "random"});
  application.at_random = arrivals == "random";
}

ClusterApplication read_application(ConfigReader& reader, const ClusterDefaults& defaults) {
  ClusterApplication application;
  reader.require("name");
  reader.get("name", &application.name);
  read_arrivals(reader, application);
  if (defaults.backfills) {
    reader.require("wall_time");
  } else if (reader.has("wall_time")) {
    reader.report("wall_time", "is for queue: backfill");
  }
  reader.get("wall_time", &application.wall_time, 0ns, kLongestPhase);
  read_profile(reader, defaults, application);
  return application;
}

}  // namespace

std::string ClusterApplication::name_of(std::uint64_t copy) const {
  return count == 1 ? name : fmt::format("{} {}", name, copy + 1);
}

Profile ClusterApplication::draw(Random& random) const {
  const auto between = [&random](std::uint64_t low, std::uint64_t high) {
    return low + random.below(high - low + 1);
  };
  Profile profile = least;
  profile.tasks = static_cast<std::uint32_t>(between(least.tasks, most.tasks));
  if (all_do_io) profile.io_tasks = profile.tasks;
  profile.steps = static_cast<std::uint32_t>(between(least.steps, most.steps));
  profile.io_bytes.count = between(least.io_bytes.count, most.io_bytes.count);
  profile.data_bytes.count = between(least.data_bytes.count, most.data_bytes.count);
  profile.message_bytes.count = between(least.message_bytes.count, most.message_bytes.count);
  return profile;
}

void read_percent(ConfigReader& reader, const char* key, std::uint32_t* percent) {
  *percent = read_number(reader, key, *percent, 0, 100);
}

void read_remote_percent(ConfigReader& reader, bool has_remote, std::uint32_t* percent) {
  if (!has_remote && reader.has("remote_percent")) {
    reader.report("remote_percent", "is not for place: cache or central");
  }
  read_percent(reader, "remote_percent", percent);
}

std::vector<ClusterApplication> read_cluster_applications(ConfigReader& reader,
                                                          const ClusterDefaults& defaults) {
  std::vector<ClusterApplication> applications;
  std::set<std::string> names;
  std::uint64_t count = 0;
  reader.require("applications");
  const bool is_list = reader.for_each("applications", [&](ConfigReader& each) {
    const ClusterApplication& last = applications.emplace_back(read_application(each, defaults));
    count += last.count;
    for (std::uint64_t copy = 0; copy < last.count; ++copy) {
      if (names.insert(last.name_of(copy)).second) continue;
      each.report("name", fmt::format("'{}' is listed twice", last.name_of(copy)));
      break;
    }
  });
  if (is_list && applications.empty()) reader.report("applications", "must name at least one");
  if (count > kMostApplications) {
    reader.report("applications",
                  fmt::format("are {}; at most {} are possible", count, kMostApplications));
  }
  return applications;
}

}  // namespace vpfs::sim
