#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/flat_table.h"
#include "stage/rule.h"
#include "stage/rule_keys.h"
#include "stage/text_hash.h"

namespace vpfs::stage {

// Ordered rules, of which the first one that matches is found without trying them all.
//
// Each rule stands under one of its conditions, the one whose values the fewest rules demand: under
// one key of each of the values, so that a request that matches shows at least one of the keys. A
// pattern's keys are literal parts of it: its start, its end, and a few bytes from anywhere. Only
// rules that demand nothing are tried for each request. Whatever is found is compared in full, so a
// hash that two values share costs time and nothing else.
//
// A look-up takes no longer with more rules, except for those that share all their values with
// others, and steps in proportion to the size of the texts. It does not allocate unless thousands
// of patterns can only be told apart by what stands in their middle. Immutable once made.
class RuleIndex {
 public:
  // `hints`: how many Identity::hints there are.
  RuleIndex(std::vector<Rule> rules, std::size_t hints);

  // The first rule that matches; null when none does.
  [[nodiscard]] const Rule* find(const Sight& sight) const;

 private:
  using RuleNumber = std::uint32_t;
  class Search;
  // The rules under a key.
  struct Span {
    std::uint32_t number;  // of the span itself, from 0
    std::uint32_t first;   // in numbers_
    std::uint32_t count;
  };
  // What rules stand under, of a hint or of the directory.
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

  // Most infixes that no rule stands under can be told without a look into the table.
  static constexpr std::size_t kFilterBits = std::size_t{1} << 15U;
  [[nodiscard]] static std::size_t filter_bit(std::uint64_t number) {
    return number * 0x9e3779b97f4a7c15 >> 49U;
  }

  [[nodiscard]] std::vector<Entry> choose_keys();
  void fill(std::vector<Entry> entries);
  void note(const RuleKey& key);

  std::vector<Rule> rules_;
  std::vector<RuleNumber> always_;   // rules that stand under no key
  std::vector<RuleNumber> numbers_;  // ascending in each span
  FlatTable<Span> spans_;            // by RuleKey::number()
  TextHash hash_;

  // What of a request has to be looked up.
  bool kinds_ = false;
  bool file_systems_ = false;
  std::vector<Attribute> values_;  // of numbers
  std::vector<Attribute> known_;
  std::vector<int> prefixes_;  // of addresses
  std::vector<Text> texts_;
  std::vector<std::uint64_t> infix_filter_;
};

}  // namespace vpfs::stage
