#include "stage/rule_rows.h"

#include <algorithm>
#include <set>
#include <utility>

namespace vpfs::stage {

RuleRows::RuleRows() {
  add("default");
}

void RuleRows::add(const std::string& name) {
  auto row = static_cast<std::uint32_t>(rows_.size());
  if (free_.empty()) {
    rows_.emplace_back();
  } else {
    row = free_.back();
    free_.pop_back();
  }
  rows_[row].name = std::make_shared<const std::string>(name);
  by_name_.emplace(name, row);
}

void RuleRows::free(std::uint32_t row) {
  const std::uint32_t next = rows_[row].generation + 1;
  rows_[row] = {.name = nullptr, .generation = next};
  free_.push_back(row);
}

void RuleRows::reconfigure(const std::vector<RuleConfig>& rules) {
  std::set<std::string_view> names = {"default"};
  for (const RuleConfig& rule : rules) names.insert(rule.name);
  std::erase_if(by_name_, [&](const auto& each) {
    if (names.contains(each.first)) return false;
    free(each.second);
    return true;
  });
  for (const RuleConfig& rule : rules) {
    if (!by_name_.contains(rule.name)) add(rule.name);
  }
}

void RuleRows::add(std::string_view name, std::uint64_t hits, std::uint64_t made,
                   TimePoint last_hit) {
  const RuleRef rule = find(name);
  if (!is_there(rule)) return;
  Row& row = rows_[rule.row];
  row.hits += hits;
  row.made += made;
  row.last_hit = std::max(row.last_hit, last_hit);
}

RuleRef RuleRows::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return {};
  return {.row = found->second, .generation = rows_[found->second].generation};
}

}  // namespace vpfs::stage
