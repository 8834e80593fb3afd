#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage/address.h"
#include "stage/config.h"
#include "stage/identity.h"
#include "stage/job_registry.h"
#include "stage/rule.h"
#include "stage/rule_index.h"

namespace vpfs::stage {

// The ordered rules of the configuration. Immutable once made, so all workers share one.
class Classifier {
 public:
  // REQUIRES: `rules` passed parse_config() without errors. `jobs`, if given, outlives the
  // classifier; a job id then counts only if it is registered for the client and user that show it.
  explicit Classifier(const std::vector<RuleConfig>& rules, std::uint8_t default_class = 0,
                      const JobRegistry* jobs = nullptr);

  // The names of all hints that the rules use. An identity needs no others.
  [[nodiscard]] const std::vector<std::string>& hint_names() const { return hint_names_; }
  // Whether any rule uses the uid.
  [[nodiscard]] bool looks_at_uid() const { return looks_at_uid_; }

  static constexpr std::uint32_t kNoRule = UINT32_MAX;

  struct Match {
    std::string virtual_pfs;    // "job-42": the name with all fields filled in
    std::string declared_name;  // "job-{jobid}": as the configuration has it
    std::uint8_t traffic_class = 0;
    bool name_refused = false;        // the request's values make no good name, so it is "default"
    bool job_not_registered = false;  // its job id was ignored
    std::uint32_t rule = kNoRule;     // index into Config::rules
    // The shadow rule that would take the request, if it stands before `rule`, and the virtual PFS
    // it would belong to.
    std::uint32_t shadow_rule = kNoRule;
    std::string shadow_name;
    bool exempt = false;      // it is never held
    std::uint32_t nodes = 0;  // of its registered job; 0: not known
    std::string jobid;        // from the wire or from a registration; "": none
    bool job_from_registration = false;
  };
  // The first rule that matches; "default" if none does or if the request fills in a bad name
  // (is_good_name()).
  [[nodiscard]] Match classify(const Address& client, const Identity& identity) const;

  // Adds everything to `key` that classify() uses: two requests with the same key have the same
  // match. False, with a part added, if a text is longer than kLongestName: such a key is not worth
  // keeping.
  [[nodiscard]] bool append_key(const Address& client, const Identity& identity,
                                std::string& key) const;

 private:
  [[nodiscard]] std::vector<Rule> read(const std::vector<RuleConfig>& rules);
  [[nodiscard]] Rule read(const RuleConfig& from);
  void note_attributes(const Rule& rule);
  [[nodiscard]] Match match_of(const Sight& sight) const;
  // The index of the identity's job id if that is not registered for it.
  [[nodiscard]] std::optional<std::size_t> false_job(const Address& client,
                                                     const Identity& identity) const;
  [[nodiscard]] std::string fill_in(const Rule& rule, const Sight& sight) const;
  [[nodiscard]] bool demands_hint(const Rule& rule, std::string_view name) const;
  std::size_t index_of_hint(const std::string& name);

  std::vector<std::string> hint_names_;
  // The parts of a key beside all hints.
  Attributes looked_at_;
  bool looks_at_kind_ = false;
  bool looks_at_client_ = false;
  bool looks_at_uid_ = false;  // in rules
  RuleIndex rules_;
  std::uint8_t default_class_;
  const JobRegistry* jobs_;
  std::optional<std::size_t> job_hint_;  // into hint_names_, when there are jobs
};

}  // namespace vpfs::stage
