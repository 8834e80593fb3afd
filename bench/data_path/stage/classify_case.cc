#include "bench/data_path/stage/classify_case.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/system_clock.h"
#include "stage/rules/classifier.h"

namespace vpfs {
namespace {

using stage::Address;
using stage::Classifier;
using stage::Identity;
using stage::RuleConfig;

constexpr std::array<std::size_t, 3> kRules = {10, 100, 1000};
constexpr std::size_t kBatch = 64;

struct Request {
  Address client;
  Identity identity;
  std::string directory;
  std::string job;
  std::optional<std::string_view> hint;
};

// An attribute, and how rules match it.
struct Demand {
  const char* name;
  void (*add)(RuleConfig& rule, std::uint32_t number);
};

std::string hint_of(std::string_view pattern, std::uint32_t number) {
  return fmt::format(fmt::runtime(pattern), number);
}

constexpr std::array kAttributes = {
    Demand{"hint", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.hints = {{"jobid", {hint_of("job-{}", i)}}}}};
              }},
    Demand{"hint_prefix", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.hints = {{"jobid", {hint_of("job-{}-*", i)}}}}};
              }},
    Demand{"hint_suffix", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.hints = {{"jobid", {hint_of("job-*-{}", i)}}}}};
              }},
    Demand{"hint_pattern", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.hints = {{"jobid", {hint_of("*-u{:04}?-*", i)}}}}};
              }},
    Demand{"hint_brackets", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.hints = {{"jobid", {hint_of("job-[0-9]*-u{:04}[ab]*", i)}}}}};
              }},
    Demand{"address", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.clients = {fmt::format("10.1.{}.{}", i / 250, i % 250)}}};
              }},
    Demand{"block", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.clients = {fmt::format("10.{}.{}.0/{}", i / 250, i % 250, 20 + i % 8)}}};
              }},
    Demand{"uid", [](RuleConfig& rule, std::uint32_t i) { rule.any_of = {{.uids = {i}}}; }},
    Demand{"file_system", [](RuleConfig& rule, std::uint32_t i) { rule.any_of = {{.file_systems = {i}}}; }},
    Demand{"node", [](RuleConfig& rule, std::uint32_t i) { rule.any_of = {{.nodes = {i}}}; }},
    Demand{"target", [](RuleConfig& rule, std::uint32_t i) { rule.any_of = {{.targets = {i}}}; }},
    Demand{"owner", [](RuleConfig& rule, std::uint32_t i) { rule.any_of = {{.owners = {i}}}; }},
    Demand{"dir", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.directories = {fmt::format("/scratch/projects/project-{}", i)}}};
              }},
    Demand{"dir_prefix", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.directories = {fmt::format("/scratch/projects/project-{}/*", i)}}};
              }},
    Demand{"dir_pattern", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.directories = {fmt::format("*/user-{:04}/*", i)}}};
              }},
    Demand{"operation", [](RuleConfig& rule, std::uint32_t /*i*/) {
                rule.any_of = {{.kinds = {IoKind::metadata}}};
              }},
    Demand{"needed", [](RuleConfig& rule, std::uint32_t i) {
                rule.virtual_pfs = fmt::format("v{}-{{owner}}", i);
              }},
    Demand{"uid_and_node", [](RuleConfig& rule, std::uint32_t i) {
                rule.any_of = {{.uids = {5'000 + i / 32}, .nodes = {i % 32}}};
              }},
    // Rules match four different attributes in turn.
    Demand{"mixed", [](RuleConfig& rule, std::uint32_t i) {
                if (i % 4 == 0) rule.any_of = {{.hints = {{"jobid", {hint_of("job-{}-*", i)}}}}};
                if (i % 4 == 1) rule.any_of = {{.clients = {fmt::format("10.1.{}.0/24", i % 250)}}};
                if (i % 4 == 2) rule.any_of = {{.uids = {i}}};
                if (i % 4 == 3) rule.any_of = {{.directories = {fmt::format("*/user-{:04}/*", i)}}};
              }},
};

// Requests that resemble the rules, but match none.
std::vector<Request> requests(std::string_view attribute) {
  std::vector<Request> made(kBatch);
  for (std::uint32_t i = 0; i < kBatch; ++i) {
    Request& each = made[i];
    each.client = *Address::parse(fmt::format("10.200.{}.7", i));
    each.directory = fmt::format("/scratch/projects/project-x{}/user-9{:04}/run", i, i);
    each.job = fmt::format("job-x{}-u9{:04}a-{:04}x", i, i, i);
    each.hint = each.job;
    each.identity = {.kind = IoKind::write,
                     .file_system = 1'000'000 + i,
                     .uid = 5'000 + i % 32,
                     .node = 1'000'000 + i,
                     .target = 1'000'000 + i,
                     .directory = each.directory};
    if (attribute != "needed") each.identity.owner = 1'000'000 + i;
  }
  return made;
}

double quantile(std::vector<double>& values, std::size_t permille) {
  std::ranges::sort(values);
  return values[(values.size() - 1) * permille / 1000];
}

ClassifySample measure(const Demand& attribute, std::size_t count, std::uint32_t batches) {
  std::vector<RuleConfig> rules;
  for (std::uint32_t i = 0; i < count; ++i) {
    RuleConfig& rule = rules.emplace_back();
    rule.virtual_pfs = fmt::format("v{}", i);
    attribute.add(rule, i);
  }
  const Classifier classifier(rules);
  std::vector<Request> shown = requests(attribute.name);
  for (Request& each : shown) {
    if (!classifier.hint_names().empty()) each.identity.hints = {&each.hint, 1};
  }
  const SystemClock clock;
  std::vector<double> times;
  std::size_t matched = 0;
  for (std::uint32_t batch = 0; batch < batches; ++batch) {
    const TimePoint start = clock.now();
    for (const Request& each : shown) {
      matched += classifier.classify(each.client, each.identity).declared_name == "default" ? 0 : 1;
    }
    const Duration taken = clock.now() - start;
    times.push_back(static_cast<double>(taken.count()) / kBatch);
  }
  VPFS_ASSERT(matched == 0);
  return {.rules = count,
          .attribute = attribute.name,
          .ns_p50 = quantile(times, 500),
          .ns_p99 = quantile(times, 990)};
}

}  // namespace

std::vector<ClassifySample> measure_classify(std::uint32_t batches) {
  std::vector<ClassifySample> samples;
  for (const Demand& attribute : kAttributes) {
    for (const std::size_t rules : kRules) samples.push_back(measure(attribute, rules, batches));
  }
  return samples;
}

}  // namespace vpfs
