#include "stage/rules/rule_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

namespace vpfs::stage {
namespace {

using Look = RuleKey::Look;

template <typename T>
void add_if_new(std::vector<T>& list, T value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

// Counts how many rules demand each key.
class Demand {
 public:
  void add(const std::vector<RuleCondition>& conditions) {
    std::vector<std::uint64_t> numbers;
    for (const RuleCondition& condition : conditions) {
      for (const RuleValue& value : condition) {
        for (const RuleKey& key : value) numbers.push_back(key.number());
      }
    }
    std::ranges::sort(numbers);
    const auto rest = std::ranges::unique(numbers);
    numbers.erase(rest.begin(), rest.end());
    for (const std::uint64_t number : numbers) {
      std::size_t* const count = counts_.find(number);
      if (count == nullptr) {
        counts_.insert(number, 1);
      } else {
        ++*count;
      }
    }
  }
  std::size_t of(const RuleKey& key) { return *counts_.find(key.number()); }
  // The first of the rarest ones.
  const RuleKey& rarest(const RuleValue& value) {
    return *std::ranges::min_element(value, {}, [this](const RuleKey& key) { return of(key); });
  }
  // How often its commonest value occurs.
  std::size_t of(const RuleCondition& condition) {
    std::size_t most = 0;
    for (const RuleValue& value : condition) most = std::max(most, of(rarest(value)));
    return most;
  }

 private:
  FlatTable<std::size_t> counts_;
};

// A set of numbers below `most`.
class Seen {
 public:
  explicit Seen(std::size_t most) {
    if (most > 64 * few_.size()) many_.resize(most / 64 + 1);
  }
  // False: it was there already.
  bool add(std::size_t number) {
    std::uint64_t& word = many_.empty() ? few_[number / 64] : many_[number / 64];
    const std::uint64_t bit = std::uint64_t{1} << number % 64;
    return (std::exchange(word, word | bit) & bit) == 0;
  }

 private:
  std::array<std::uint64_t, 64> few_ = {};
  std::vector<std::uint64_t> many_;
};

}  // namespace

RuleIndex::RuleIndex(std::vector<Rule> rules, std::size_t hints)
    : rules_(std::move(rules)), texts_(hints + std::size(kTextAttributes)) {
  fill(choose_keys());
}

std::vector<RuleIndex::Entry> RuleIndex::choose_keys() {
  const std::size_t hints = texts_.size() - std::size(kTextAttributes);
  std::vector<std::vector<RuleCondition>> all;
  Demand demand;
  for (const Rule& rule : rules_) {
    all.push_back(conditions_of(rule, hints, hash_));
    demand.add(all.back());
  }
  std::vector<Entry> entries;
  for (RuleNumber rule = 0; rule < rules_.size(); ++rule) {
    if (all[rule].empty()) {
      always_.push_back(rule);
      continue;
    }
    const RuleCondition& rarest = *std::ranges::min_element(
        all[rule], {},
        [&](const RuleCondition& each) { return std::pair(demand.of(each), each.size()); });
    for (const RuleValue& value : rarest) {
      entries.push_back({.key = demand.rarest(value), .rule = rule});
    }
  }
  return entries;
}

void RuleIndex::fill(std::vector<Entry> entries) {
  const auto place = [](const Entry& entry) { return std::pair(entry.key.number(), entry.rule); };
  std::ranges::sort(entries, {}, place);
  const auto rest = std::ranges::unique(entries, {}, place);
  entries.erase(rest.begin(), rest.end());
  for (const Entry& entry : entries) {
    const std::uint64_t number = entry.key.number();
    note(entry.key);
    if (Span* const span = spans_.find(number)) {
      ++span->count;
    } else {
      spans_.insert(number, {.number = static_cast<std::uint32_t>(spans_.size()),
                             .first = static_cast<std::uint32_t>(numbers_.size()),
                             .count = 1});
    }
    numbers_.push_back(entry.rule);
  }
  std::ranges::sort(prefixes_);
}

void RuleIndex::note(const RuleKey& key) {
  const auto attribute = static_cast<Attribute>(key.of);
  switch (key.look) {
    case Look::kind:
      kinds_ = true;
      return;
    case Look::file_system:
      file_systems_ = true;
      return;
    case Look::number:
      return add_if_new(values_, attribute);
    case Look::known:
      return add_if_new(known_, attribute);
    case Look::address:
      return add_if_new(prefixes_, static_cast<int>(key.of));
    default:
      break;
  }
  Text& text = texts_[key.of];
  const auto size_bit = [&] { return std::uint64_t{1} << key.size; };
  if (key.look == Look::there) text.there = true;
  if (key.look == Look::prefix) text.prefixes |= size_bit();
  if (key.look == Look::suffix) text.suffixes |= size_bit();
  if (key.look == Look::whole) {
    text.whole = true;
    text.longest = std::max(text.longest, key.size);
  }
  if (key.look == Look::infix) {
    (key.size == kInfix ? text.infixes : text.small_infixes) = true;
    infix_filter_.resize(kFilterBits / 64);
    const std::size_t bit = filter_bit(key.number());
    infix_filter_[bit / 64] |= std::uint64_t{1} << bit % 64;
  }
}

// One look-up, which finds earlier and earlier rules.
class RuleIndex::Search {
 public:
  // `all` takes every rule that matches, if it is given.
  Search(const RuleIndex& index, const Sight& sight, Among among, std::vector<const Rule*>* all)
      : index_(index), sight_(sight), among_(among), all_(all), best_(index.rules_.size()) {}

  [[nodiscard]] const Rule* run();

 private:
  void try_in_turn(std::span<const RuleNumber> rules);
  void look_at(const RuleKey& key);
  void look_at(std::size_t text, std::optional<std::string_view> shown);
  void look_at_infixes(std::size_t text, std::string_view shown, std::size_t size);

  const RuleIndex& index_;
  const Sight& sight_;
  Among among_;
  std::vector<const Rule*>* all_;
  std::size_t best_;
};

const Rule* RuleIndex::find(const Sight& sight, Among among) const {
  return Search(*this, sight, among, nullptr).run();
}

std::vector<const Rule*> RuleIndex::find_all(const Sight& sight) const {
  std::vector<const Rule*> all;
  (void)Search(*this, sight, Among::all, &all).run();
  return all;
}

const Rule* RuleIndex::Search::run() {
  const Identity& identity = sight_.identity;
  try_in_turn(index_.always_);
  if (index_.kinds_) {
    look_at({.look = Look::kind, .value = std::to_underlying(identity.kind)});
  }
  if (index_.file_systems_) {
    look_at({.look = Look::file_system,
             .of = std::to_underlying(Attribute::file_system),
             .value = static_cast<std::uint64_t>(identity.file_system)});
  }
  for (const Attribute each : index_.values_) {
    const auto look = [&](std::uint64_t number) {
      look_at({.look = Look::number, .of = std::to_underlying(each), .value = number});
    };
    if (each == Attribute::gid) {
      for (const std::uint64_t gid : sight_.gids) look(gid);
    } else if (const auto number = sight_.number(each)) {
      look(*number);
    }
  }
  for (const Attribute each : index_.known_) {
    if (sight_.knows(each)) look_at({.look = Look::known, .of = std::to_underlying(each)});
  }
  for (const int prefix : index_.prefixes_) look_at(address_key(prefix, sight_.client));
  const std::size_t hints = index_.texts_.size() - std::size(kTextAttributes);
  for (std::size_t i = 0; i < hints; ++i) look_at(i, sight_.hint(i));
  for (std::size_t i = 0; i < std::size(kTextAttributes); ++i) {
    look_at(hints + i, sight_.text(kTextAttributes[i]));
  }
  return best_ < index_.rules_.size() ? &index_.rules_[best_] : nullptr;
}

void RuleIndex::Search::try_in_turn(std::span<const RuleNumber> rules) {
  for (const RuleNumber rule : rules) {
    const Rule& candidate = index_.rules_[rule];
    if (rule >= best_) return;
    if (among_ == Among::enforcing && candidate.is_shadow) continue;
    if (!matches(candidate, sight_)) continue;
    if (all_ == nullptr) {
      best_ = rule;
      return;
    }
    all_->push_back(&candidate);
  }
}

void RuleIndex::Search::look_at(const RuleKey& key) {
  const Span* const span = index_.spans_.find(key.number());
  if (span == nullptr) return;
  try_in_turn(std::span(index_.numbers_).subspan(span->first, span->count));
}

void RuleIndex::Search::look_at(std::size_t text, std::optional<std::string_view> shown) {
  if (!shown) return;
  const Text& looks = index_.texts_[text];
  const std::string_view bytes = Pattern::visible(*shown);
  const auto of = static_cast<std::uint32_t>(text);
  const auto look = [&](Look kind, std::string_view part) {
    look_at({.look = kind, .of = of, .value = index_.hash_(part)});
  };
  if (looks.there) look_at({.look = Look::there, .of = of});
  if (looks.whole && bytes.size() <= looks.longest) look(Look::whole, bytes);
  for (std::uint64_t left = looks.prefixes; left != 0; left &= left - 1) {
    const auto size = static_cast<std::size_t>(std::countr_zero(left));
    if (size > bytes.size()) break;
    look(Look::prefix, bytes.substr(0, size));
  }
  for (std::uint64_t left = looks.suffixes; left != 0; left &= left - 1) {
    const auto size = static_cast<std::size_t>(std::countr_zero(left));
    if (size > bytes.size()) break;
    look(Look::suffix, bytes.substr(bytes.size() - size));
  }
  if (looks.infixes) look_at_infixes(text, bytes, kInfix);
  if (looks.small_infixes) look_at_infixes(text, bytes, kSmallInfix);
}

void RuleIndex::Search::look_at_infixes(std::size_t text, std::string_view shown,
                                        std::size_t size) {
  if (shown.size() < size) return;
  Seen seen(index_.spans_.size());  // a text may contain an infix many times
  for (std::size_t at = 0; at + size <= shown.size(); ++at) {
    const std::uint64_t number = infix_key(text, shown.substr(at, size)).number();
    const std::size_t bit = filter_bit(number);
    if ((index_.infix_filter_[bit / 64] >> bit % 64 & 1U) == 0) continue;
    const Span* const span = index_.spans_.find(number);
    if (span == nullptr || !seen.add(span->number)) continue;
    try_in_turn(std::span(index_.numbers_).subspan(span->first, span->count));
  }
}

}  // namespace vpfs::stage
