#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "stage/place.h"
#include "stage/rules/rule_types.h"

namespace vpfs::stage {

// What the stage has counted for each rule, by the rule's name. A row stays through every
// reconfiguration that has a rule of that name. Requests that no rule takes count for "default".
class RuleRows {
 public:
  struct Row {
    std::shared_ptr<const std::string> name;  // shared with readers; nothing: the number is free
    std::uint32_t generation = 0;             // of the number
    std::uint64_t hits = 0;                   // requests, however they ended
    std::uint64_t made = 0;                   // virtual PFSes
    TimePoint last_hit = {};                  // if there are hits
  };
  static constexpr RuleRef kDefault = {.row = 0, .generation = 0};

  RuleRows();

  void reconfigure(const std::vector<RuleConfig>& rules);
  // kNone for a name that no rule has.
  [[nodiscard]] RuleRef find(std::string_view name) const;

  // Both do nothing if the rule is gone.
  void hit(RuleRef rule, TimePoint now) {
    if (!is_there(rule)) return;
    Row& row = rows_[rule.row];
    ++row.hits;
    row.last_hit = now;
  }
  void made(RuleRef rule) {
    if (is_there(rule)) ++rows_[rule.row].made;
  }

  // Counts of a predecessor, for the rule of that name.
  void add(std::string_view name, std::uint64_t hits, std::uint64_t made, TimePoint last_hit);

  [[nodiscard]] bool is_there(RuleRef rule) const {
    return rule.row < rows_.size() && rows_[rule.row].generation == rule.generation;
  }
  // nullptr: the rule is gone.
  [[nodiscard]] const Row* row(RuleRef rule) const {
    return is_there(rule) ? &rows_[rule.row] : nullptr;
  }
  // All rows, "default" first; some numbers may be free.
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] const Row& operator[](std::size_t row) const { return rows_[row]; }

 private:
  void add(const std::string& name);
  void free(std::uint32_t row);

  std::vector<Row> rows_;
  std::vector<std::uint32_t> free_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
};

}  // namespace vpfs::stage
