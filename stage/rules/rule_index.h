#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/flat_table.h"
#include "stage/rules/rule.h"
#include "stage/rules/rule_keys.h"
#include "stage/rules/text_hash.h"

namespace vpfs::stage {

// Finds the first matching rule of an ordered list without trying all of them.
//
// Each rule is filed under one of its conditions: the one whose values the fewest rules demand. It
// is filed under one key of each value, so a matching request shows at least one of the keys. A
// pattern's keys are its literal parts: its start, its end, and a few bytes from anywhere. Only
// rules without conditions are tried for every request. Rules that are found are compared in full,
// so a hash collision costs only time.
//
// The time of a look-up grows with the size of the texts but not with the number of rules, unless
// rules share all their values. It allocates only if thousands of patterns differ in nothing but
// their middle. Immutable once made.
class RuleIndex {
 public:
  // `hints`: how many hints the rules look at, which are the first of Identity::hints.
  RuleIndex(std::vector<Rule> rules, std::size_t hints);

  enum class Among : std::uint8_t { all, enforcing };
  // The first rule that matches; null when none does.
  [[nodiscard]] const Rule* find(const Sight& sight, Among among = Among::all) const;
  // All rules that match, in no order; a rule may come twice.
  [[nodiscard]] std::vector<const Rule*> find_all(const Sight& sight) const;

 private:
  using RuleNumber = std::uint32_t;
  class Search;
  // The rules under a key.
  struct Span {
    std::uint32_t number;  // of the span itself, from 0
    std::uint32_t first;   // in numbers_
    std::uint32_t count;
  };
  // The keys in use for a text.
  struct Text {
    bool there = false;
    bool whole = false;
    bool infixes = false;
    bool small_infixes = false;
    std::size_t longest = 0;     // of whole texts
    std::uint64_t prefixes = 0;  // bit n: there are some of n bytes
    std::uint64_t suffixes = 0;
  };
  struct Entry {
    RuleKey key;
    RuleNumber rule;
  };

  // Tells most unused infixes without a look into the table.
  static constexpr std::size_t kFilterBits = std::size_t{1} << 15U;
  [[nodiscard]] static std::size_t filter_bit(std::uint64_t number) {
    return number * 0x9e3779b97f4a7c15 >> 49U;
  }

  [[nodiscard]] std::vector<Entry> choose_keys();
  void fill(std::vector<Entry> entries);
  void note(const RuleKey& key);

  std::vector<Rule> rules_;
  std::vector<RuleNumber> always_;   // rules under no key
  std::vector<RuleNumber> numbers_;  // ascending in each span
  FlatTable<Span> spans_;            // by RuleKey::number()
  TextHash hash_;

  // The attributes of a request that must be looked up.
  bool kinds_ = false;
  bool file_systems_ = false;
  std::vector<Attribute> values_;  // of numbers
  std::vector<Attribute> known_;
  std::vector<int> prefixes_;  // of addresses
  std::vector<Text> texts_;
  std::vector<std::uint64_t> infix_filter_;
};

}  // namespace vpfs::stage
