#include "stage/rule.h"

#include <algorithm>

namespace vpfs::stage {
namespace {

// An empty list demands nothing.
bool is_one_of(const std::vector<std::uint64_t>& wanted,
               const std::optional<std::uint64_t>& number) {
  return wanted.empty() || (number && std::ranges::binary_search(wanted, *number));
}

}  // namespace

std::optional<std::uint32_t> Sight::number(Attribute attribute) const {
  switch (attribute) {
    case Attribute::uid:
      return identity.uid;
    case Attribute::node:
      return identity.node;
    case Attribute::target:
      return identity.target;
    case Attribute::owner:
      return identity.owner;
    default:
      return std::nullopt;
  }
}

bool matches(const Rule& rule, const Sight& sight) {
  const Identity& identity = sight.identity;
  if (rule.kind && *rule.kind != identity.kind) return false;
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
  const auto holds = [&](const Rule::HintCondition& condition) {
    const std::optional<std::string_view> value = sight.hint(condition.index);
    return value && condition.pattern.matches(*value);
  };
  if (!std::ranges::all_of(rule.needed, is_known) || !std::ranges::all_of(rule.hints, holds)) {
    return false;
  }
  return rule.directories.empty() ||
         (!identity.directory.empty() &&
          std::ranges::any_of(rule.directories, [&](const Pattern& pattern) {
            return pattern.matches(identity.directory);
          }));
}

}  // namespace vpfs::stage
