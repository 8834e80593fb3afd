#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stage/rules/rule.h"
#include "stage/rules/rule_index.h"
#include "stage/rules/rule_types.h"

namespace vpfs::stage {

// The ordered rules of a configuration, prepared for look-ups. Immutable once made; making one of
// 1,000 rules takes milliseconds, so classifiers with other jobs share it.
class RuleSet {
 public:
  // REQUIRES: the rules passed parse_config() or parse_rule() without errors.
  explicit RuleSet(const std::vector<RuleConfig>& rules);

  // What a request that matches belongs to.
  struct Target {
    std::string virtual_pfs;
    std::uint8_t traffic_class = 0;
    bool is_template = false;
    bool exempt = false;
  };
  // In the order of the rules.
  [[nodiscard]] const std::vector<Target>& targets() const { return targets_; }
  [[nodiscard]] const RuleIndex& index() const { return index_; }

  // The names of the hints that the rules use.
  [[nodiscard]] const std::vector<std::string>& hint_names() const { return hint_names_; }
  // The attributes that they use, in conditions or in templates.
  [[nodiscard]] const Attributes& looked_at() const { return looked_at_; }
  [[nodiscard]] bool looks_at_kind() const { return looks_at_kind_; }
  [[nodiscard]] bool looks_at_client() const { return looks_at_client_; }
  [[nodiscard]] bool looks_at_job() const;

  // The target's name with the request's values. REQUIRES: the rule matches.
  [[nodiscard]] std::string fill_in(const Rule& rule, const Sight& sight) const;
  // The attributes and values of one rule's conditions, for comparing rules with each other.
  [[nodiscard]] bool demands_hint(const Rule& rule, std::string_view name) const;

 private:
  [[nodiscard]] std::vector<Rule> read(const std::vector<RuleConfig>& rules);
  [[nodiscard]] Rule read(const RuleConfig& from, const Conditions& conditions);
  void note_attributes(const Rule& rule);
  std::size_t index_of_hint(const std::string& name);

  std::vector<std::string> hint_names_;
  Attributes looked_at_;
  bool looks_at_kind_ = false;
  bool looks_at_client_ = false;
  std::vector<Target> targets_;
  RuleIndex index_;
};

}  // namespace vpfs::stage
