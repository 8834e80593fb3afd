#include "stage/shadow_limits.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace vpfs::stage {

void ShadowLimits::set_bucket(std::optional<Bucket>& bucket, std::uint64_t rate,
                              std::uint64_t depth, TimePoint now) {
  if (rate == 0) return bucket.reset();
  if (!bucket) bucket = {.tokens = TokenBucket(rate, depth), .longest = {}};
  TokenBucket& tokens = bucket->tokens;
  if (tokens.rate() != rate || tokens.depth() != depth) tokens.change(rate, depth, now);
  TokenBucket in_debt(rate, depth);
  in_debt.take(2 * depth, now);
  bucket->longest = in_debt.ready_at(depth) - now;
}

TimePoint ShadowLimits::Bucket::charge(std::uint64_t amount, TimePoint now) {
  const TimePoint ready = tokens.ready_at(amount);
  tokens.take(amount, now);
  if (tokens.ready_at(tokens.depth()) - now > longest) {
    tokens = TokenBucket(tokens.rate(), tokens.depth());
    tokens.take(2 * tokens.depth(), now);
  }
  return ready;
}

ShadowLimits::Report& ShadowLimits::Report::operator+=(const Report& other) {
  seen += other.seen;
  would_hold += other.would_hold;
  held += other.held;
  unmeasured += other.unmeasured;
  names += other.names;
  return *this;
}

void ShadowLimits::reconfigure(const Config& config, const RuleRows& rules, TimePoint now) {
  for (auto& [name, rule] : rules_) rule.is_there = false;
  std::unordered_map<std::string_view, const VirtualPfsConfig*> declared_by_name;
  const bool has_shadow_rules = std::ranges::any_of(
      config.rules, [](const RuleConfig& each) { return each.mode == RuleMode::shadow; });
  if (has_shadow_rules) {
    for (const VirtualPfsConfig& each : config.virtual_pfs) {
      declared_by_name.emplace(each.name, &each);
    }
  }
  for (const RuleConfig& each : config.rules) {
    if (each.mode != RuleMode::shadow) continue;
    const auto declared = declared_by_name.find(each.virtual_pfs);
    Rule& rule = rules_[each.name];
    rule.is_there = true;
    rule.ref = rules.find(each.name);
    rule.share = declared == declared_by_name.end() ? Share{} : declared->second->share;
    for (const auto& [name, row] : rule.rows) set_buckets(rows_[row], rule.share, now);
  }
  for (auto each = rules_.begin(); each != rules_.end();) {
    const auto rule = each++;
    if (rule->second.is_there) continue;
    free_rows(rule->second);
    rules_.erase(rule);
  }
}

void ShadowLimits::set_buckets(Row& row, const Share& share, TimePoint now) {
  set_bucket(row.bytes, share.rate.count, std::max<std::uint64_t>(share.burst.count, 1), now);
  set_bucket(row.operations, share.operations, std::max<std::uint64_t>(share.burst_operations, 1),
             now);
}

std::uint32_t ShadowLimits::make_row(Rule& rule) {
  auto row = static_cast<std::uint32_t>(rows_.size());
  if (free_.empty()) {
    rows_.emplace_back();
  } else {
    row = free_.back();
    free_.pop_back();
  }
  rows_[row].rule = &rule;
  return row;
}

void ShadowLimits::free_row(std::uint32_t row) {
  if (rows_[row].virtual_pfs != nullptr) --measured_;
  const std::uint32_t next = rows_[row].generation + 1;
  const bool listed = rows_[row].in_idle_list;
  rows_[row] = Row{};
  rows_[row].generation = next;
  rows_[row].in_idle_list = listed;
  free_.push_back(row);
}

void ShadowLimits::free_rows(Rule& rule) {
  for (const auto& [name, row] : rule.rows) free_row(row);
  if (rule.others) free_row(*rule.others);
}

ShadowRef ShadowLimits::use(std::uint32_t row, TimePoint now) {
  rows_[row].last_used = now;
  rows_[row].retiring = false;
  return {.row = row, .generation = rows_[row].generation};
}

ShadowRef ShadowLimits::find(std::string_view rule_name, const std::string& virtual_pfs,
                             TimePoint now) {
  const auto rule = rules_.find(rule_name);
  if (rule == rules_.end()) return {};
  const auto known = rule->second.rows.find(virtual_pfs);
  if (known != rule->second.rows.end()) return use(known->second, now);
  if (measured_ == kMostRows) {
    std::optional<std::uint32_t>& others = rule->second.others;
    if (!others) others = make_row(rule->second);
    return use(*others, now);
  }
  const std::uint32_t row = make_row(rule->second);
  ++measured_;
  rows_[row].virtual_pfs = &rule->second.rows.emplace(virtual_pfs, row).first->first;
  rows_[row].counts.names = 1;
  set_buckets(rows_[row], rule->second.share, now);
  return use(row, now);
}

RuleRef ShadowLimits::arrive(ShadowRef shadow, Bytes size, TimePoint now) {
  if (shadow.row >= rows_.size() || rows_[shadow.row].generation != shadow.generation) return {};
  Row& row = rows_[shadow.row];
  row.last_used = now;
  row.retiring = false;
  row.counts.seen.add(size);
  if (row.virtual_pfs == nullptr) row.counts.unmeasured.add(size);
  TimePoint ready = now;
  if (row.bytes) ready = std::max(ready, row.bytes->charge(size.count, now));
  if (row.operations) ready = std::max(ready, row.operations->charge(1, now));
  if (ready > now) {
    row.counts.would_hold.add(size);
    row.counts.held += std::max(ready - std::max(row.held_until, now), Duration::zero());
    row.held_until = std::max(row.held_until, ready);
  }
  return row.rule->ref;
}

ShadowLimits::Report ShadowLimits::counts_of(const Row& row, TimePoint now) {
  Report report = row.counts;
  report.held -= std::max(row.held_until - now, Duration::zero());
  return report;
}

std::optional<ShadowLimits::Report> ShadowLimits::report(std::string_view rule,
                                                         TimePoint now) const {
  const auto found = rules_.find(rule);
  if (found == rules_.end()) return std::nullopt;
  Report sum = found->second.retired;
  for (const auto& [name, row] : found->second.rows) sum += counts_of(rows_[row], now);
  const auto& others = found->second.others;
  if (others) sum += rows_[*others].counts;
  return sum;
}

std::optional<ShadowLimits::Report> ShadowLimits::report(std::string_view rule,
                                                         std::string_view virtual_pfs,
                                                         TimePoint now) const {
  const auto found = rules_.find(rule);
  if (found == rules_.end()) return std::nullopt;
  const auto row = found->second.rows.find(virtual_pfs);
  if (row == found->second.rows.end()) return std::nullopt;
  return counts_of(rows_[row->second], now);
}

std::optional<ShadowLimits::RowReport> ShadowLimits::row(std::size_t row, TimePoint now) const {
  const Row& found = rows_[row];
  if (found.rule == nullptr) return std::nullopt;
  return RowReport{
      .rule = found.rule->ref, .virtual_pfs = found.virtual_pfs, .counts = counts_of(found, now)};
}

std::optional<ShadowLimits::Report> ShadowLimits::retired(std::string_view rule) const {
  const auto found = rules_.find(rule);
  return found == rules_.end() ? std::nullopt : std::optional(found->second.retired);
}

void ShadowLimits::find_idle(std::size_t rows, Duration idle_for, TimePoint now) {
  for (std::size_t looked = 0; looked < std::min(rows, rows_.size()); ++looked) {
    if (next_row_ >= rows_.size()) next_row_ = 0;
    const auto index = static_cast<std::uint32_t>(next_row_++);
    Row& row = rows_[index];
    if (row.virtual_pfs == nullptr || row.in_idle_list || now - row.last_used < idle_for) continue;
    row.retiring = row.in_idle_list = true;
    idle_.push_back(index);
  }
}

void ShadowLimits::retire_one(TimePoint now) {
  VPFS_ASSERT(has_idle());
  const std::uint32_t index = idle_.back();
  idle_.pop_back();
  Row& row = rows_[index];
  row.in_idle_list = false;
  // It may have been used meanwhile, or its rule is gone.
  if (!row.retiring) return;
  Rule& rule = *row.rule;
  rule.retired += counts_of(row, now);
  rule.rows.erase(rule.rows.find(*row.virtual_pfs));
  free_row(index);
}

std::vector<VirtualPfsConfig> enforced_virtual_pfs(const Config& config) {
  std::set<std::string_view> shadow;
  for (const RuleConfig& rule : config.rules) {
    if (rule.mode == RuleMode::shadow) shadow.insert(rule.virtual_pfs);
  }
  for (const RuleConfig& rule : config.rules) {
    if (rule.mode != RuleMode::shadow) shadow.erase(rule.virtual_pfs);
  }
  std::vector<VirtualPfsConfig> enforced;
  for (const VirtualPfsConfig& each : config.virtual_pfs) {
    if (!shadow.contains(each.name)) enforced.push_back(each);
  }
  return enforced;
}

}  // namespace vpfs::stage
