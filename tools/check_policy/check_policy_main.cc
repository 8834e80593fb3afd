// vpfs-check-policy: whether the policies of a plugin keep what every policy has to keep.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/command_line.h"
#include "base/joined.h"
#include "control/plugins/plugin_files.h"
#include "schedulers/conformance/rules.h"
#include "tools/check_policy/allocations.h"
#include "tools/check_policy/child.h"

namespace vpfs::check_policy {
namespace {

constexpr std::chrono::seconds kMostForLoading{10};
constexpr std::chrono::seconds kMostForRule{20};
constexpr std::array<std::uint32_t, 3> kWeights = {1, 2, 4};

struct Options {
  std::string plugin;
  std::string policy;
  bool holds_back = false;
};

// Only children call it: a plugin may do anything, from its static constructors on.
const PolicyKind& load(const std::string& plugin, std::string_view policy) {
  static control::PluginFiles files;
  const auto loaded = files.load(plugin);
  if (!loaded) throw std::runtime_error(loaded.error().message);
  const PolicyKind* const kind = find_policy(policy, loaded->policies);
  if (kind == nullptr) throw std::runtime_error(fmt::format("there is no policy {}", policy));
  return *kind;
}

// The names of the plugin's policies, and its maker in the last line.
std::string describe(const std::string& plugin) {
  control::PluginFiles files;
  const auto loaded = files.load(plugin);
  if (!loaded) return "!" + loaded.error().message;
  std::string text;
  for (const std::string_view name : scheduler_names(loaded->policies)) {
    text += fmt::format("{}\n", name);
  }
  return text + loaded->maker;
}

conformance::Subject subject_of(const Options& options, std::string_view policy) {
  conformance::Subject subject = {.kind = &load(options.plugin, policy),
                                  .allocations = allocations};
  if (options.holds_back) subject.vary = [](SchedulerSettings&, std::uint64_t) { return true; };
  return subject;
}

bool check(const Options& options, std::string_view policy, const conformance::Rule& rule) {
  const Result<std::string> said =
      in_child([&] { return rule.check(subject_of(options, policy)); }, kMostForRule);
  const std::string problem = said ? *said : said.error().message;
  std::cout << fmt::format("  {:<6} {:<12} {}\n", problem.empty() ? "ok" : "FAILED", rule.name,
                           rule.about);
  if (!problem.empty()) std::cout << fmt::format("         {:<12} {}\n", "", problem);
  return problem.empty();
}

// What weights mean to the policy; it need not share by them.
void show_division(const Options& options, std::string_view policy) {
  const auto divide = [&] {
    const auto sent = divided_by_weight(subject_of(options, policy), kWeights);
    const double unit = static_cast<double>(std::max<Cost>(sent.front(), 1));
    std::vector<std::string> parts;
    for (const Cost each : sent) {
      parts.push_back(fmt::format("{:.2f}", static_cast<double>(each) / unit));
    }
    return joined(parts, " : ");
  };
  if (const Result<std::string> said = in_child(divide, kMostForRule)) {
    std::cout << fmt::format("  weights {} divide cost {}\n", fmt::join(kWeights, " : "), *said);
  }
}

bool check_rules(const Options& options, std::string_view policy) {
  bool all = true;
  for (const conformance::Rule& rule : conformance::rules()) {
    const bool kept = check(options, policy, rule);
    if (!kept && rule.name == conformance::kFirstRule) return false;
    all = kept && all;
  }
  show_division(options, policy);
  return all;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.emplace_back(text);
  return lines;
}

int cannot(const std::string& why) {
  std::cerr << "vpfs-check-policy: " << why << "\n";
  return kBadUsage;
}

int check_plugin(const Options& options) {
  const auto described = in_child([&] { return describe(options.plugin); }, kMostForLoading);
  if (!described) {
    return cannot(
        fmt::format("{}: while it is loaded, {}", options.plugin, described.error().message));
  }
  if (described->starts_with('!')) return cannot(described->substr(1));
  std::vector<std::string> policies = lines_of(*described);
  const std::string maker = policies.back();
  policies.pop_back();
  if (!options.policy.empty()) {
    if (std::ranges::find(policies, options.policy) == policies.end()) {
      return cannot(fmt::format("{} has no policy {} (it has: {})", options.plugin, options.policy,
                                joined(policies)));
    }
    policies = {options.policy};
  }
  bool all = true;
  for (const std::string& policy : policies) {
    std::cout << fmt::format("{} of {}{}\n", policy, options.plugin,
                             maker.empty() ? "" : fmt::format(" ({})", maker));
    all = check_rules(options, policy) && all;
  }
  return all ? 0 : 1;
}

int run(int argc, char** argv) {
  OptionParser app("Checks that the policies of a plugin keep what every policy has to keep.");
  Options options;
  app.add_option("--plugin", options.plugin, "the shared library; required").value_name("FILE");
  app.add_option("--policy", options.policy, "one of its policies; otherwise all of them")
      .value_name("NAME");
  app.add_flag("--holds-back", options.holds_back,
               "the policy may hold any request until a time that it names: it need not be work "
               "conserving");
  if (const auto code = app.parse("vpfs-check-policy", argc, argv)) return *code;
  if (options.plugin.empty()) return app.missing("--plugin");
  options.plugin = std::filesystem::absolute(options.plugin).lexically_normal().string();
  return exit_after_output("vpfs-check-policy", check_plugin(options));
}

}  // namespace
}  // namespace vpfs::check_policy

int main(int argc, char** argv) {
  try {
    return vpfs::check_policy::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vpfs-check-policy: %s\n", error.what());
    return 1;
  }
}
