#include "stage/config/condition_values.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "stage/rules/client_list.h"
#include "stage/rules/number_ranges.h"

namespace vpfs::stage {
namespace {

// A condition on numbers.
struct NumberWord {
  std::string_view key;
  Attribute attribute;
  std::uint64_t most;
  std::vector<std::uint64_t> Conditions::*numbers;
  NumberKind kind = NumberKind::plain;
};
constexpr std::array kNumberWords = {
    NumberWord{"fs", Attribute::file_system, INT32_MAX, &Conditions::file_systems},
    NumberWord{"uid", Attribute::uid, UINT32_MAX, &Conditions::uids, NumberKind::user},
    NumberWord{"gid", Attribute::gid, UINT32_MAX, &Conditions::gids, NumberKind::group},
    NumberWord{"node", Attribute::node, UINT32_MAX, &Conditions::nodes},
    NumberWord{"target", Attribute::target, UINT16_MAX, &Conditions::targets},
    NumberWord{"owner", Attribute::owner, UINT32_MAX, &Conditions::owners, NumberKind::user},
};

// Whether the user probably meant numbers: a set of characters that begins with two digits and a
// dash, as in [4711-4715].
bool looks_like_a_range(std::string_view pattern) {
  for (std::size_t at = pattern.find('['); at != std::string_view::npos;
       at = pattern.find('[', at + 1)) {
    const std::size_t end = pattern.find_first_not_of("0123456789", at + 1);
    if (end != std::string_view::npos && end > at + 2 && pattern[end] == '-') return true;
  }
  return false;
}

// Reads one term.
class TermReader {
 public:
  TermReader(const ConditionTerm& term, const Config& context, const ReportCondition& report,
             Conditions& conditions)
      : term_(term), context_(context), report_(report), conditions_(conditions) {}

  void run() {
    if (term_.key == "client") return read_clients();
    if (term_.key == "op") return read_kinds();
    if (term_.key == "dir") {
      return read_patterns(Attribute::directory, conditions_.directories,
                           "an empty pattern matches nothing");
    }
    const std::string empty = "an empty pattern matches nothing; '*' matches any value";
    if (term_.key == "jobid") return read_patterns(Attribute::jobid, conditions_.jobids, empty);
    if (term_.key == "account") {
      return read_patterns(Attribute::account, conditions_.accounts, empty);
    }
    if (term_.key.starts_with(kHint)) return read_hint();
    const auto number = std::ranges::find(kNumberWords, term_.key, &NumberWord::key);
    if (number != kNumberWords.end()) read_numbers(*number);
  }

 private:
  bool shown(Attribute attribute) {
    if (may_be_known(context_, attribute)) return true;
    report_(term_, std::nullopt, fmt::format("{} does not show it", context_.source));
    return false;
  }

  void read_clients() {
    for (std::size_t i = 0; i < term_.values.size(); ++i) {
      const Result<void> added = add_clients(term_.values[i], context_.names, conditions_.clients);
      if (!added) report_(term_, i, added.error().message);
    }
  }

  void read_kinds() {
    for (std::size_t i = 0; i < term_.values.size(); ++i) {
      const std::string& text = term_.values[i];
      const auto kind = text == "read"       ? std::optional(IoKind::read)
                        : text == "write"    ? std::optional(IoKind::write)
                        : text == "metadata" ? std::optional(IoKind::metadata)
                                             : std::nullopt;
      if (!kind) {
        report_(term_, i, fmt::format("\"{}\" is not one of: read, write, metadata", text));
        continue;
      }
      if (*kind == IoKind::metadata) (void)shown(Attribute::metadata);
      if (std::ranges::find(conditions_.kinds, *kind) == conditions_.kinds.end()) {
        conditions_.kinds.push_back(*kind);
      }
    }
  }

  void read_patterns(Attribute attribute, std::vector<std::string>& patterns,
                     const std::string& empty) {
    if (!shown(attribute)) return;
    patterns = term_.values;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (patterns[i].empty()) return report_(term_, i, empty);
      if (looks_like_a_range(patterns[i])) {
        return report_(term_, i,
                       fmt::format("'{}' is a pattern, in which brackets match one character: "
                                   "expected a list such as {{4711 4712}}, or *",
                                   patterns[i]));
      }
    }
  }

  void read_hint() {
    const std::string name = term_.key.substr(kHint.size());
    std::vector<std::string>& patterns =
        conditions_.hints.emplace_back(name, std::vector<std::string>()).second;
    read_patterns(Attribute::hint, patterns,
                  fmt::format("the pattern of '{}' is empty; '*' matches any value", name));
  }

  void read_numbers(const NumberWord& word) {
    if (!shown(word.attribute)) return;
    std::vector<std::uint64_t>& numbers = conditions_.*word.numbers;
    for (std::size_t i = 0; i < term_.values.size(); ++i) {
      const auto problem =
          add_numbers(term_.values[i], word.kind, word.most, context_.names, numbers);
      if (problem) report_(term_, i, *problem);
    }
  }

  const ConditionTerm& term_;
  const Config& context_;
  const ReportCondition& report_;
  Conditions& conditions_;
};

std::optional<std::string> add_named(const std::string& name, NumberKind kind, const Names* names,
                                     std::vector<std::uint64_t>& numbers) {
  const std::string_view what = kind == NumberKind::user ? "user" : "group";
  if (names == nullptr) {
    return fmt::format("'{}': names of {}s cannot be looked up here", name, what);
  }
  const std::optional<std::uint32_t> id =
      kind == NumberKind::user ? names->user(name) : names->group(name);
  if (!id) return fmt::format("there is no {} '{}'", what, name);
  numbers.push_back(*id);
  return std::nullopt;
}

}  // namespace

bool may_be_known(const Config& context, Attribute attribute) {
  return attribute == Attribute::jobid || attribute == Attribute::gid ||
         attribute == Attribute::account || context.shown.has(attribute);
}

std::optional<std::string> add_numbers(const std::string& text, NumberKind kind, std::uint64_t most,
                                       const Names* names, std::vector<std::uint64_t>& numbers) {
  const bool may_be_name =
      !text.empty() && std::string_view("0123456789-+.,[ ").find(text[0]) == std::string::npos;
  if (kind != NumberKind::plain && may_be_name) return add_named(text, kind, names, numbers);
  const bool in_brackets = text.starts_with('[') && text.ends_with(']');
  const auto ranges =
      number_ranges(in_brackets ? std::string_view(text).substr(1, text.size() - 2) : text, most);
  if (!ranges) return fmt::format("'{}' is not a number from 0 to {}", text, most);
  for (const NumberRange& range : *ranges) {
    if (range.last - range.first >= kMostNumbers - std::min(kMostNumbers, numbers.size())) {
      return fmt::format("'{}' stands for more than {} numbers", text, kMostNumbers);
    }
    for (std::uint64_t each = range.first; each <= range.last; ++each) numbers.push_back(each);
  }
  return std::nullopt;
}

Conditions read_conditions(const ConditionTerms& terms, const Config& context,
                           const ReportCondition& report) {
  Conditions conditions;
  for (const ConditionTerm& term : terms) {
    TermReader(term, context, report, conditions).run();
  }
  return conditions;
}

}  // namespace vpfs::stage
