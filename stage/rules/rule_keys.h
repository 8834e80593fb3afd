#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "stage/rules/rule.h"
#include "stage/rules/text_hash.h"

// The values of a request by which a rule can be found.
namespace vpfs::stage {

// One thing that a request may show.
struct RuleKey {
  enum class Look : std::uint8_t {
    kind,
    file_system,
    number,   // of the attribute `of`: uid, gid, node, target, owner
    known,    // the attribute `of`
    address,  // its first `of` bits
    // The following are of the text `of`; see text_of().
    there,
    whole,
    prefix,
    suffix,
    infix,
  };
  Look look = Look::kind;
  std::uint32_t of = 0;
  std::uint64_t value = 0;  // a text's hash, or the bytes of an infix
  std::size_t size = 0;     // of the text, or the part of it

  // Equal for equal keys; collisions are rare.
  [[nodiscard]] std::uint64_t number() const {
    const auto place = std::uint64_t{of} << 8U | static_cast<std::uint64_t>(look);
    return value ^ (place + 1) * 0x9e3779b97f4a7c15;
  }
};

// The longest prefixes and suffixes in use, and the sizes of infixes. A literal part of a pattern
// uses infixes of the larger size if it is long enough, since fewer texts contain them.
inline constexpr std::size_t kLongestAffix = 32;
inline constexpr std::size_t kInfix = 4;
inline constexpr std::size_t kSmallInfix = 3;

[[nodiscard]] inline RuleKey infix_key(std::size_t text, std::string_view bytes) {
  std::uint64_t value = bytes.size();
  for (const char each : bytes) value = value << 8U | static_cast<std::uint8_t>(each);
  return {.look = RuleKey::Look::infix,
          .of = static_cast<std::uint32_t>(text),
          .value = value,
          .size = bytes.size()};
}
// The texts of a request have numbers: first its hints, then those of kTextAttributes.
inline constexpr Attribute kTextAttributes[] = {Attribute::directory, Attribute::jobid,
                                                Attribute::account};
// Nothing: the attribute is not text.
[[nodiscard]] std::optional<std::size_t> text_of(Attribute attribute, std::size_t hints);

[[nodiscard]] RuleKey address_key(int prefix, const Address& address);

// A matching request shows all keys of at least one value of each condition.
using RuleValue = std::vector<RuleKey>;
using RuleCondition = std::vector<RuleValue>;  // without values nothing fulfils it
// `hints`: how many hints the rules look at. The most selective conditions come first.
[[nodiscard]] std::vector<RuleCondition> conditions_of(const Rule& rule, std::size_t hints,
                                                       const TextHash& hash);

}  // namespace vpfs::stage
