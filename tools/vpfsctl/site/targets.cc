#include "tools/vpfsctl/site/targets.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace vpfs::ctl {
namespace {

constexpr std::string_view kSpaces = " \t\r,";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = text.find_first_not_of(kSpaces);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    words.push_back(text.substr(0, text.find_first_of(kSpaces)));
    text.remove_prefix(words.back().size());
  }
}

Target target_at(control::PortAddress endpoint) {
  std::string name = control::to_string(endpoint);
  return {.name = std::move(name), .endpoint = std::move(endpoint)};
}

Result<Target> make_target(std::string_view text) {
  Result<control::PortAddress> endpoint = control::parse_port_address(text);
  VPFS_TRY(endpoint);
  return target_at(std::move(*endpoint));
}

std::vector<Target> without_repetitions(std::vector<Target> targets) {
  std::vector<Target> unique;
  for (Target& target : targets) {
    const auto same = [&target](const Target& each) { return each.endpoint == target.endpoint; };
    if (std::ranges::none_of(unique, same)) unique.push_back(std::move(target));
  }
  return unique;
}

Result<void> add_file(const std::string& file, const TargetPlaces& places,
                      std::vector<Target>* targets) {
  const Result<std::string> text = places.read(file);
  VPFS_TRY(text);
  Result<std::vector<Target>> found = parse_proxies(*text, file);
  VPFS_TRY(found);
  if (found->empty()) return fail(fmt::format("{}: names no proxy", file));
  std::ranges::move(*found, std::back_inserter(*targets));
  return {};
}

// By their usual names: one that listens for administrators, and one for stages.
bool is_of_coordinator(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  return name.starts_with("coordinator") || name.starts_with("stages");
}

ChosenTargets default_targets(const TargetPlaces& places) {
  const std::string usual = fmt::format("{}/proxy.sock", kRunDirectory);
  std::vector<std::string> sockets = places.sockets(std::string(kRunDirectory));
  ChosenTargets chosen;
  if (std::ranges::find(sockets, usual) != sockets.end()) {
    chosen.targets = {target_at({.path = usual})};
    return chosen;
  }
  const std::size_t before = std::erase_if(sockets, is_of_coordinator);
  if (sockets.empty()) {
    chosen.targets = {target_at({.path = usual})};
    chosen.note = fmt::format(
        "no proxy was named, and {} has no socket of one: --proxy or VPFS_PROXY names its "
        "control.socket{}",
        kRunDirectory, before > 0 ? ", and --coordinator that of a coordinator" : "");
    return chosen;
  }
  for (const std::string& path : sockets) {
    chosen.targets.push_back(target_at({.path = path}));
  }
  chosen.note = fmt::format("no proxy was named, and there is no {}; using {}", usual,
                            fmt::join(sockets, ", "));
  return chosen;
}

}  // namespace

Result<std::vector<Target>> parse_proxies(std::string_view text, std::string_view file) {
  std::vector<Target> targets;
  std::vector<std::size_t> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find('#'));
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) continue;
    if (words.size() > 2) {
      return fail(fmt::format("{}:{}: \"{}\" is not expected: a line is an endpoint and a name",
                              file, number, words[2]));
    }
    Result<Target> target = make_target(words[0]);
    if (!target) return fail(fmt::format("{}:{}: {}", file, number, target.error().message));
    if (words.size() == 2 && make_target(words[1])) {
      return fail(fmt::format(
          "{}:{}: \"{}\" is another endpoint: expected one endpoint on a line, and its name", file,
          number, words[1]));
    }
    if (words.size() == 2) {
      target->name = words[1];
      target->is_named = true;
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].endpoint == target->endpoint || targets[i].name == target->name) {
        return fail(
            fmt::format("{}:{}: the same proxy or name as in line {}", file, number, lines[i]));
      }
    }
    targets.push_back(std::move(*target));
    lines.push_back(number);
  }
  return targets;
}

Result<ChosenTargets> choose_targets(const TargetOptions& options, const TargetPlaces& places) {
  ChosenTargets chosen;
  for (const std::string& text : options.proxies) {
    Result<Target> target = make_target(text);
    if (!target) return fail("--proxy: " + target.error().message);
    chosen.targets.push_back(std::move(*target));
  }
  if (options.all || !options.file.empty()) {
    const std::string file = options.file.empty() ? std::string(kProxiesFile) : options.file;
    VPFS_TRY(add_file(file, places, &chosen.targets));
  }
  if (chosen.targets.empty() && options.environment) {
    for (const std::string_view text : words_of(*options.environment)) {
      Result<Target> target = make_target(text);
      if (!target) return fail("VPFS_PROXY: " + target.error().message);
      chosen.targets.push_back(std::move(*target));
    }
  }
  if (chosen.targets.empty()) return default_targets(places);
  chosen.targets = without_repetitions(std::move(chosen.targets));
  return chosen;
}

}  // namespace vpfs::ctl
