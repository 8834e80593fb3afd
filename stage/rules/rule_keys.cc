#include "stage/rules/rule_keys.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace vpfs::stage {
namespace {

using Look = RuleKey::Look;

RuleValue value_of(const Pattern& pattern, std::size_t text, const TextHash& hash) {
  const auto of = static_cast<std::uint32_t>(text);
  const auto text_key = [&](Look look, std::string_view bytes) {
    return RuleKey{.look = look, .of = of, .value = hash(bytes), .size = bytes.size()};
  };
  const std::string_view prefix = pattern.prefix();
  const std::string_view suffix = pattern.suffix();
  if (pattern.is_literal()) return {text_key(Look::whole, prefix)};
  RuleValue keys;
  if (!prefix.empty()) {
    keys.push_back(text_key(Look::prefix, prefix.substr(0, kLongestAffix)));
  }
  if (!suffix.empty()) {
    const std::size_t size = std::min(suffix.size(), kLongestAffix);
    keys.push_back(text_key(Look::suffix, suffix.substr(suffix.size() - size)));
  }
  for (const std::string& part : pattern.parts()) {
    const std::size_t size = part.size() < kInfix ? kSmallInfix : kInfix;
    for (std::size_t at = 0; at + size <= part.size(); ++at) {
      keys.push_back(infix_key(text, std::string_view(part).substr(at, size)));
    }
  }
  keys.push_back({.look = Look::there, .of = of});
  return keys;
}

RuleCondition condition_of(std::span<const Pattern> patterns, std::size_t text,
                           const TextHash& hash) {
  RuleCondition condition;
  for (const Pattern& pattern : patterns) {
    if (!pattern.is_never()) condition.push_back(value_of(pattern, text, hash));
  }
  return condition;
}

RuleCondition condition_of(Look look, std::uint32_t of, const std::vector<std::uint64_t>& wanted) {
  RuleCondition condition;
  for (const std::uint64_t each : wanted) {
    condition.push_back({RuleKey{.look = look, .of = of, .value = each}});
  }
  return condition;
}

}  // namespace

std::optional<std::size_t> text_of(Attribute attribute, std::size_t hints) {
  const auto* const found = std::ranges::find(kTextAttributes, attribute);
  if (found == std::end(kTextAttributes)) return std::nullopt;
  return hints + static_cast<std::size_t>(found - std::begin(kTextAttributes));
}

RuleKey address_key(int prefix, const Address& address) {
  std::uint64_t hash = 0;
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 8; ++i) bits = bits << 8U | address.bytes()[8 * half + i];
    const int counted = std::clamp(prefix - 64 * static_cast<int>(half), 0, 64);
    bits = counted == 0 ? 0 : bits >> (64 - counted);
    hash = (hash ^ bits) * 0xd6e8feb86659fd93;
    hash ^= hash >> 32;
  }
  return {.look = Look::address, .of = static_cast<std::uint32_t>(prefix), .value = hash};
}

std::vector<RuleCondition> conditions_of(const Rule& rule, std::size_t hints,
                                         const TextHash& hash) {
  std::vector<RuleCondition> conditions;
  const auto numbers = [&](Look look, Attribute attribute,
                           const std::vector<std::uint64_t>& wanted) {
    if (wanted.empty()) return;
    conditions.push_back(condition_of(look, std::to_underlying(attribute), wanted));
  };
  numbers(Look::number, Attribute::uid, rule.uids);
  numbers(Look::number, Attribute::node, rule.nodes);
  numbers(Look::number, Attribute::target, rule.targets);
  numbers(Look::number, Attribute::owner, rule.owners);
  numbers(Look::number, Attribute::gid, rule.gids);
  for (const Rule::HintCondition& hint : rule.hints) {
    conditions.push_back(condition_of(hint.patterns, hint.index, hash));
  }
  if (!rule.clients.empty()) {
    RuleCondition& blocks = conditions.emplace_back();
    for (const AddressBlock& each : rule.clients) {
      blocks.push_back({address_key(each.prefix(), each.address())});
    }
  }
  const auto texts = [&](Attribute attribute, const std::vector<Pattern>& wanted) {
    if (wanted.empty()) return;
    conditions.push_back(condition_of(wanted, *text_of(attribute, hints), hash));
  };
  texts(Attribute::directory, rule.directories);
  texts(Attribute::jobid, rule.jobids);
  texts(Attribute::account, rule.accounts);
  numbers(Look::file_system, Attribute::file_system, rule.file_systems);
  for (const Attribute each : rule.needed) {
    const std::optional<std::size_t> text = text_of(each, hints);
    const RuleKey key = {.look = text ? Look::there : Look::known,
                         .of = text ? static_cast<std::uint32_t>(*text) : std::to_underlying(each)};
    conditions.push_back({{key}});
  }
  if (!rule.kinds.empty()) {
    RuleCondition& kinds = conditions.emplace_back();
    for (const IoKind each : rule.kinds) {
      kinds.push_back({{.look = Look::kind, .value = std::to_underlying(each)}});
    }
  }
  return conditions;
}

}  // namespace vpfs::stage
