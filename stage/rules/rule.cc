#include "stage/rules/rule.h"

#include <algorithm>

namespace vpfs::stage {
namespace {

// An empty list demands nothing.
bool is_one_of(const std::vector<std::uint64_t>& wanted,
               const std::optional<std::uint64_t>& number) {
  return wanted.empty() || (number && std::ranges::binary_search(wanted, *number));
}
bool has_one_of(const std::vector<std::uint64_t>& wanted, std::span<const std::uint64_t> numbers) {
  return wanted.empty() || std::ranges::any_of(numbers, [&](std::uint64_t each) {
           return std::ranges::binary_search(wanted, each);
         });
}

bool fits_one_of(const std::vector<Pattern>& wanted, const std::optional<std::string_view>& text) {
  return text && std::ranges::any_of(
                     wanted, [&](const Pattern& pattern) { return pattern.matches(*text); });
}
bool holds(const std::vector<Pattern>& wanted, const std::optional<std::string_view>& text) {
  return wanted.empty() || fits_one_of(wanted, text);
}

}  // namespace

std::optional<std::uint64_t> Sight::number(Attribute attribute) const {
  switch (attribute) {
    case Attribute::uid:
      return identity.uid;
    case Attribute::node:
      return identity.node;
    case Attribute::target:
      return identity.target;
    case Attribute::owner:
      return identity.owner;
    case Attribute::gid:
      return gids.empty() ? std::nullopt : std::optional(gids.front());
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> Sight::text(Attribute attribute) const {
  const auto unless_empty = [](std::string_view value) {
    return value.empty() ? std::nullopt : std::optional(value);
  };
  switch (attribute) {
    case Attribute::directory:
      return unless_empty(identity.directory);
    case Attribute::jobid:
      return jobid;
    case Attribute::account:
      return unless_empty(account);
    default:
      return std::nullopt;
  }
}

bool matches(const Rule& rule, const Sight& sight) {
  const Identity& identity = sight.identity;
  if (!rule.kinds.empty() && std::ranges::find(rule.kinds, identity.kind) == rule.kinds.end()) {
    return false;
  }
  if (!is_one_of(rule.file_systems, static_cast<std::uint64_t>(identity.file_system)) ||
      !is_one_of(rule.uids, identity.uid) || !is_one_of(rule.nodes, identity.node) ||
      !is_one_of(rule.targets, identity.target) || !is_one_of(rule.owners, identity.owner)) {
    return false;
  }
  if (!rule.clients.empty() && std::ranges::none_of(rule.clients, [&](const AddressBlock& block) {
        return block.contains(sight.client);
      })) {
    return false;
  }
  const auto is_known = [&](Attribute each) { return sight.knows(each); };
  const auto is_shown = [&](const Rule::HintCondition& condition) {
    return fits_one_of(condition.patterns, sight.hint(condition.index));
  };
  return std::ranges::all_of(rule.needed, is_known) && std::ranges::all_of(rule.hints, is_shown) &&
         has_one_of(rule.gids, sight.gids) && holds(rule.jobids, sight.jobid) &&
         holds(rule.accounts, sight.text(Attribute::account)) &&
         holds(rule.directories, sight.text(Attribute::directory));
}

}  // namespace vpfs::stage
