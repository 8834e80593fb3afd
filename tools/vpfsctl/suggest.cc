#include "tools/vpfsctl/suggest.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_word.h"

namespace vpfs::ctl {
namespace {

struct Elsewhere {
  std::string_view group;
  std::string_view word;
  std::string_view instead;
};

constexpr std::array kElsewhere = {Elsewhere{"", "set_param", "rule start NAME COND WORDS"},
                                   Elsewhere{"", "get_param", "stat, job_stats or rule list"},
                                   Elsewhere{"", "list_param", "status"},
                                   Elsewhere{"", "nrs_policies", "status"},
                                   Elsewhere{"", "start", "rule start or job start"},
                                   Elsewhere{"", "change", "rule change"},
                                   Elsewhere{"", "stop", "rule stop or job stop"},
                                   Elsewhere{"", "list", "rule list or job list"},
                                   Elsewhere{"", "apply", "rule apply -f FILE"},
                                   Elsewhere{"", "confirm", "rule confirm"},
                                   Elsewhere{"", "history", "rule history"},
                                   Elsewhere{"", "rollback", "rule rollback N"},
                                   Elsewhere{"", "add", "rule start"},
                                   Elsewhere{"", "delete", "rule stop"},
                                   Elsewhere{"", "remove", "rule stop"},
                                   Elsewhere{"", "show", "status, stat or rule list"},
                                   Elsewhere{"", "why", "who"},
                                   Elsewhere{"", "help", "--help"},
                                   Elsewhere{"rule", "add", "start"},
                                   Elsewhere{"rule", "create", "start"},
                                   Elsewhere{"rule", "delete", "stop"},
                                   Elsewhere{"rule", "remove", "stop"},
                                   Elsewhere{"rule", "set", "change"},
                                   Elsewhere{"rule", "modify", "change"},
                                   Elsewhere{"rule", "update", "change"},
                                   Elsewhere{"rule", "show", "list"},
                                   Elsewhere{"rule", "load", "apply -f FILE"},
                                   Elsewhere{"rule", "undo", "rollback N"},
                                   Elsewhere{"rule", "revert", "rollback N"},
                                   Elsewhere{"job", "add", "start"},
                                   Elsewhere{"job", "register", "start"},
                                   Elsewhere{"job", "end", "stop"},
                                   Elsewhere{"job", "remove", "stop"},
                                   Elsewhere{"job", "show", "list"}};

std::optional<std::string> instead_of(std::string_view word, std::string_view group,
                                      std::span<const std::string> known) {
  const auto is_it = [&](const Elsewhere& each) {
    return each.group == group && each.word == word;
  };
  if (word.find("nrs_tbf_rule") != std::string_view::npos) {
    return "rule start NAME COND WORDS, rule change NAME WORDS or rule stop NAME";
  }
  const auto found = std::ranges::find_if(kElsewhere, is_it);
  if (found != kElsewhere.end()) return std::string(found->instead);
  return nearest_word(word, known);
}

}  // namespace

std::string unknown_command(std::string_view word, std::string_view group,
                            std::span<const std::string> known) {
  const std::string what = group.empty() ? fmt::format("unknown command \"{}\"", word)
                                         : fmt::format("unknown command \"{} {}\"", group, word);
  if (const auto instead = instead_of(word, group, known)) {
    return fmt::format("{}; did you mean {}{}{}?", what, group, group.empty() ? "" : " ", *instead);
  }
  return fmt::format("{} (known here: {})", what, fmt::join(known, ", "));
}

std::string unknown_option(std::string_view option, std::span<const std::string> known) {
  const std::string_view name = option.substr(0, option.find('='));
  const auto nearest = nearest_word(name, known);
  return fmt::format("unknown option {}{}", name,
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace vpfs::ctl
