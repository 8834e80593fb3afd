#include "stage/rules/rule_checks.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fnmatch.h>

#include "stage/rules/address.h"
#include "stage/rules/rule_set.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {
namespace {

bool is_literal(const std::string& pattern) {
  return pattern.find_first_of("*?[\\") == std::string::npos;
}

// Whether everything that matches `narrow` also matches `wide`.
bool pattern_covers(const std::string& wide, const std::string& narrow) {
  if (wide == "*" || wide == narrow) return true;
  return is_literal(narrow) && ::fnmatch(wide.c_str(), narrow.c_str(), 0) == 0;
}

// Whether a condition on the values `wide` (empty: any) holds wherever one on `narrow` does.
template <typename T, typename Covers>
bool condition_covers(const std::vector<T>& wide, const std::vector<T>& narrow, Covers covers) {
  if (wide.empty()) return true;
  return !narrow.empty() && std::ranges::all_of(narrow, [&](const T& one) {
    return std::ranges::any_of(wide, [&](const T& other) { return covers(other, one); });
  });
}

// The lists are ascending.
bool numbers_cover(const std::vector<std::uint64_t>& wide,
                   const std::vector<std::uint64_t>& narrow) {
  return wide.empty() || (!narrow.empty() && std::ranges::includes(wide, narrow));
}

// Conditions with their numbers and addresses ready to be compared.
struct Prepared {
  explicit Prepared(const Conditions& from) : texts(from) {
    for (auto* const numbers : {&texts.file_systems, &texts.uids, &texts.nodes, &texts.targets,
                                &texts.owners, &texts.gids}) {
      std::ranges::sort(*numbers);
      const auto rest = std::ranges::unique(*numbers);
      numbers->erase(rest.begin(), rest.end());
    }
    for (const std::string& client : from.clients) {
      if (const auto block = AddressBlock::parse(client)) clients.push_back(*block);
    }
  }

  Conditions texts;
  std::vector<AddressBlock> clients;
};

// A rule as comparing it needs it.
struct Candidate {
  std::vector<Prepared> any_of;     // at least one
  std::vector<std::string> fields;  // of its template
  bool is_shadow = false;
};

Candidate prepare(const RuleConfig& rule) {
  Candidate made = {.any_of = {},
                    .fields = template_fields(rule.virtual_pfs),
                    .is_shadow = rule.mode == RuleMode::shadow};
  for (const Conditions& each : rule.any_of) made.any_of.emplace_back(each);
  if (made.any_of.empty()) made.any_of.emplace_back(Conditions());
  return made;
}

bool hints_cover(const Conditions& wide, const Conditions& narrow) {
  return std::ranges::all_of(wide.hints, [&](const auto& wanted) {
    return std::ranges::any_of(narrow.hints, [&](const auto& other) {
      return other.first == wanted.first &&
             condition_covers(wanted.second, other.second, pattern_covers);
    });
  });
}

bool has_hint(const Conditions& conditions, std::string_view name) {
  return std::ranges::find(conditions.hints, name, [](const auto& hint) {
           return std::string_view(hint.first);
         }) != conditions.hints.end();
}

// Whether a request must show the attribute for the conditions, or the template behind them.
bool demands(const Conditions& conditions, std::span<const std::string> fields,
             Attribute attribute) {
  const auto needs = [&](const std::string& field) {
    return template_attribute(field) == attribute && !has_hint(conditions, field);
  };
  if (std::ranges::any_of(fields, needs)) return true;
  switch (attribute) {
    case Attribute::uid:
      return !conditions.uids.empty();
    case Attribute::node:
      return !conditions.nodes.empty();
    case Attribute::target:
      return !conditions.targets.empty();
    case Attribute::owner:
      return !conditions.owners.empty();
    case Attribute::directory:
      return !conditions.directories.empty();
    case Attribute::jobid:
      return !conditions.jobids.empty();
    case Attribute::gid:
      return !conditions.gids.empty();
    case Attribute::account:
      return !conditions.accounts.empty();
    default:
      return false;
  }
}

constexpr Attribute kTemplateAttributes[] = {
    Attribute::uid,       Attribute::node,  Attribute::target, Attribute::owner,
    Attribute::directory, Attribute::jobid, Attribute::gid,    Attribute::account};

// Whether everything that matches `narrow` also matches `wide`.
bool covers(const Prepared& wide, std::span<const std::string> wide_fields, const Prepared& narrow,
            std::span<const std::string> narrow_fields) {
  const Conditions& w = wide.texts;
  const Conditions& n = narrow.texts;
  const auto is_known = [&](Attribute each) {
    return !demands(w, wide_fields, each) || demands(n, narrow_fields, each);
  };
  return condition_covers(w.kinds, n.kinds, std::equal_to<>()) &&
         condition_covers(
             wide.clients, narrow.clients,
             [](const AddressBlock& a, const AddressBlock& b) { return a.covers(b); }) &&
         hints_cover(w, n) && numbers_cover(w.file_systems, n.file_systems) &&
         numbers_cover(w.uids, n.uids) && numbers_cover(w.nodes, n.nodes) &&
         numbers_cover(w.targets, n.targets) && numbers_cover(w.owners, n.owners) &&
         numbers_cover(w.gids, n.gids) &&
         condition_covers(w.directories, n.directories, pattern_covers) &&
         condition_covers(w.jobids, n.jobids, pattern_covers) &&
         condition_covers(w.accounts, n.accounts, pattern_covers) &&
         std::ranges::all_of(kTemplateAttributes, is_known);
}

// Whether `wide` takes everything that `narrow` would.
bool hides(const Candidate& wide, const Candidate& narrow) {
  if (wide.is_shadow && !narrow.is_shadow) return false;
  return std::ranges::all_of(narrow.any_of, [&](const Prepared& one) {
    return std::ranges::any_of(wide.any_of, [&](const Prepared& other) {
      return covers(other, wide.fields, one, narrow.fields);
    });
  });
}

// A text that matches the pattern and is not empty; nothing: none is found.
std::optional<std::string> example_of(const std::string& pattern) {
  std::string text;
  if (pattern.find_first_not_of('*') == std::string::npos) text = "x";
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    if (pattern[at] != '*') text += pattern[at] == '?' ? 'x' : pattern[at];
  }
  const bool is_good = !text.empty() && Pattern(pattern).matches(text);
  return is_good ? std::optional(text) : std::nullopt;
}

// A request that a rule matches, with nothing but what the rule demands.
class Example {
 public:
  Example(const Prepared& conditions, std::span<const std::string> fields,
          const std::vector<std::string>& hint_names) {
    const Conditions& from = conditions.texts;
    if (!conditions.clients.empty()) client_ = conditions.clients.front().address();
    if (!from.kinds.empty()) identity_.kind = from.kinds.front();
    const auto first = [&](const std::vector<std::uint64_t>& numbers, Attribute attribute) {
      std::optional<std::uint32_t> number;
      if (demands(from, fields, attribute)) number = 0;
      if (!numbers.empty()) number = static_cast<std::uint32_t>(numbers.front());
      return number;
    };
    identity_.file_system =
        from.file_systems.empty() ? -1 : static_cast<std::int64_t>(from.file_systems.front());
    identity_.uid = first(from.uids, Attribute::uid);
    identity_.node = first(from.nodes, Attribute::node);
    identity_.target = first(from.targets, Attribute::target);
    identity_.owner = first(from.owners, Attribute::owner);
    if (const auto gid = first(from.gids, Attribute::gid)) gids_ = {*gid};
    if (demands(from, fields, Attribute::directory)) directory_ = text_of(from.directories);
    if (demands(from, fields, Attribute::jobid)) jobid_ = text_of(from.jobids);
    if (demands(from, fields, Attribute::account)) account_ = text_of(from.accounts);
    hints_.resize(hint_names.size());
    for (const auto& [name, patterns] : from.hints) {
      const auto at = std::ranges::find(hint_names, name) - hint_names.begin();
      hints_[static_cast<std::size_t>(at)] = text_of(patterns);
    }
    for (const auto& hint : hints_) shown_.emplace_back(hint);
    identity_.directory = directory_;
    identity_.hints = shown_;
  }
  Example(const Example&) = delete;
  Example& operator=(const Example&) = delete;

  // False: no text was found that matches a pattern.
  [[nodiscard]] bool is_good() const { return is_good_; }
  [[nodiscard]] Sight sight() const {
    return {.client = client_,
            .identity = identity_,
            .jobid = jobid_ ? std::optional<std::string_view>(*jobid_) : std::nullopt,
            .account = account_,
            .gids = gids_};
  }

 private:
  // A text that the first pattern matches. An empty list is a template's field.
  std::string text_of(const std::vector<std::string>& patterns) {
    if (patterns.empty()) return "x";
    const std::optional<std::string> text = example_of(patterns.front());
    is_good_ = is_good_ && text;
    return text.value_or("");
  }

  Address client_;
  Identity identity_;
  std::vector<std::uint64_t> gids_;
  std::string directory_;
  std::optional<std::string> jobid_;
  std::string account_;
  std::vector<std::optional<std::string>> hints_;
  std::vector<std::optional<std::string_view>> shown_;
  bool is_good_ = true;
};

// The rules before `rule` that may hide it, ascending.
std::vector<std::size_t> candidates(const RuleSet& set, const Candidate& rule, std::size_t number) {
  std::vector<std::size_t> found;
  const Example example(rule.any_of.front(), rule.fields, set.hint_names());
  if (!example.is_good()) {
    for (std::size_t i = 0; i < number; ++i) found.push_back(i);
    return found;
  }
  for (const Rule* const each : set.index().find_all(example.sight())) {
    if (each->number < number) found.push_back(each->number);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::vector<std::optional<std::size_t>> hiding_rules(const std::vector<RuleConfig>& rules) {
  const RuleSet set(rules);
  std::vector<Candidate> prepared;
  prepared.reserve(rules.size());
  for (const RuleConfig& each : rules) prepared.push_back(prepare(each));
  std::vector<std::optional<std::size_t>> hiding(rules.size());
  for (std::size_t later = 0; later < rules.size(); ++later) {
    for (const std::size_t first : candidates(set, prepared[later], later)) {
      if (!hides(prepared[first], prepared[later])) continue;
      hiding[later] = first;
      break;
    }
  }
  return hiding;
}

void warn_of_hidden_rules(const std::vector<RuleConfig>& rules, ConfigErrors& errors) {
  const auto hiding = hiding_rules(rules);
  for (std::size_t later = 0; later < hiding.size(); ++later) {
    const auto& hides = hiding[later];
    if (!hides) continue;
    const RuleConfig& first = rules[*hides];
    const std::string place = fmt::format("rules[{}]", *hides);
    const auto named = [](const RuleConfig& rule, const std::string& at) {
      return rule.name == at ? at : fmt::format("{} '{}'", at, rule.name);
    };
    const std::string at = fmt::format("rules[{}]", later);
    const std::string who = rules[later].name == at ? "" : fmt::format("'{}' ", rules[later].name);
    errors.warn(at, fmt::format("{}never applies: {} {} (to {}) matches all that it would", who,
                                named(first, place),
                                errors.place(errors.line_of(place), errors.line_of(at)),
                                first.virtual_pfs));
  }
}

}  // namespace vpfs::stage
