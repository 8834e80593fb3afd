#include "stage/rule_checks.h"

#include <algorithm>

#include <fmt/format.h>
#include <fnmatch.h>

#include "stage/address.h"
#include "stage/template_name.h"

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

bool numbers_cover(const std::vector<std::uint64_t>& wide,
                   const std::vector<std::uint64_t>& narrow) {
  return condition_covers(wide, narrow, std::equal_to<>());
}

bool clients_cover(const std::vector<std::string>& wide, const std::vector<std::string>& narrow) {
  return condition_covers(wide, narrow, [](const std::string& a, const std::string& b) {
    const auto outer = AddressBlock::parse(a);
    const auto inner = AddressBlock::parse(b);
    return outer && inner && outer->covers(*inner);
  });
}

bool hints_cover(const RuleConfig& wide, const RuleConfig& narrow) {
  return std::ranges::all_of(wide.hints, [&](const auto& wanted) {
    return std::ranges::any_of(narrow.hints, [&](const auto& other) {
      return other.first == wanted.first && pattern_covers(wanted.second, other.second);
    });
  });
}

// The attributes that a request must show for the rule to apply.
bool demands(const RuleConfig& rule, Attribute attribute) {
  const auto fields = template_fields(rule.virtual_pfs);
  const auto is_hint = [&](const std::string& field) {
    return std::ranges::any_of(rule.hints, [&](const auto& hint) { return hint.first == field; });
  };
  if (std::ranges::any_of(fields, [&](const std::string& field) {
        return template_attribute(field) == attribute && !is_hint(field);
      })) {
    return true;
  }
  switch (attribute) {
    case Attribute::uid:
      return !rule.uids.empty();
    case Attribute::node:
      return !rule.nodes.empty();
    case Attribute::target:
      return !rule.targets.empty();
    case Attribute::owner:
      return !rule.owners.empty();
    case Attribute::directory:
      return !rule.directories.empty();
    default:
      return false;
  }
}

// The attributes that its template needs must be known wherever `narrow` applies.
bool template_covers(const RuleConfig& wide, const RuleConfig& narrow) {
  for (const Attribute each : {Attribute::uid, Attribute::node, Attribute::target, Attribute::owner,
                               Attribute::directory}) {
    if (demands(wide, each) && !demands(narrow, each)) return false;
  }
  return true;
}

// Whether `wide` matches everything that `narrow` does.
bool hides(const RuleConfig& wide, const RuleConfig& narrow) {
  return (!wide.kind || wide.kind == narrow.kind) && clients_cover(wide.clients, narrow.clients) &&
         hints_cover(wide, narrow) && numbers_cover(wide.file_systems, narrow.file_systems) &&
         numbers_cover(wide.uids, narrow.uids) && numbers_cover(wide.nodes, narrow.nodes) &&
         numbers_cover(wide.targets, narrow.targets) && numbers_cover(wide.owners, narrow.owners) &&
         condition_covers(wide.directories, narrow.directories, pattern_covers) &&
         template_covers(wide, narrow);
}

}  // namespace

void warn_of_hidden_rules(const Config& config, ConfigErrors& errors) {
  for (std::size_t later = 1; later < config.rules.size(); ++later) {
    for (std::size_t first = 0; first < later; ++first) {
      if (!hides(config.rules[first], config.rules[later])) continue;
      const std::string hiding = fmt::format("rules[{}]", first);
      errors.warn(fmt::format("rules[{}]", later),
                  fmt::format("never applies: {} on line {} (to {}) matches all that it would",
                              hiding, errors.line_of(hiding), config.rules[first].virtual_pfs));
      break;
    }
  }
}

}  // namespace vpfs::stage
