#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage/rules/address.h"
#include "stage/rules/identity.h"
#include "stage/rules/job_registry.h"
#include "stage/rules/rule.h"
#include "stage/rules/rule_set.h"
#include "stage/rules/rule_types.h"

namespace vpfs::stage {

// Which job ids on the wire count.
enum class JobIds : std::uint8_t {
  trusted,
  registered,  // those of jobs that are registered for the client and user that show them
};

// Finds whose a request is: by the ordered rules, and by the registered jobs, which tell what the
// wire does not show. Immutable once made, so all workers share one.
class Classifier {
 public:
  // REQUIRES: `rules` passed parse_config() without errors. `jobs`, if given, outlives the
  // classifier. `node`: as Config::node_addresses.
  explicit Classifier(const std::vector<RuleConfig>& rules, std::uint8_t default_class = 0,
                      const JobRegistry* jobs = nullptr, JobIds ids = JobIds::trusted,
                      std::vector<Address> node = {});
  // The same with rules that are prepared already, such as those of another classifier.
  Classifier(std::shared_ptr<const RuleSet> rules, std::uint8_t default_class,
             const JobRegistry* jobs, JobIds ids, std::vector<Address> node = {});

  // Shared by classifiers with the same rules.
  [[nodiscard]] const std::shared_ptr<const RuleSet>& rules() const { return rules_; }
  // The names of all hints that matter. An identity needs no others.
  [[nodiscard]] const std::vector<std::string>& hint_names() const { return hint_names_; }
  // Whether a rule or a registered job asks for the uid.
  [[nodiscard]] bool looks_at_uid() const { return looks_at_uid_; }

  static constexpr std::uint32_t kNoRule = UINT32_MAX;

  struct Match {
    std::string virtual_pfs;    // "job-42": the name with all fields filled in
    std::string declared_name;  // "job-{jobid}": as the configuration has it
    std::uint8_t traffic_class = 0;
    bool name_refused = false;        // the request's values make no good name, so it is "default"
    bool job_not_registered = false;  // its job id was ignored
    std::uint32_t rule = kNoRule;     // index into Config::rules
    // The shadow rule that would take the request, if it comes before `rule`, and the virtual PFS
    // it would belong to.
    std::uint32_t shadow_rule = kNoRule;
    std::string shadow_name;
    bool exempt = false;                        // it is never held
    std::uint32_t nodes = 0;                    // of its registered job; 0: not known
    std::optional<std::uint32_t> job_uid = {};  // of its registered job, if that has exactly one
    std::string account = {};                   // of its registered job; "": not known
    // From the wire or from a registration; "": none, or no good name (is_good_name()).
    std::string jobid;
    bool job_from_registration = false;
  };
  // The first enforcing rule that matches; "default" if none does or if the request fills in a bad
  // name (is_good_name()). The job is known only if hint_names() has its hint.
  [[nodiscard]] Match classify(const Address& client, const Identity& identity) const;

  // Adds everything to `key` that classify() uses: two requests with the same key have the same
  // match. False, with a part added, if a text is longer than kLongestName: such a key is not worth
  // keeping.
  [[nodiscard]] bool append_key(const Address& client, const Identity& identity,
                                std::string& key) const;

 private:
  // What is known of a request's job.
  struct JobOf {
    std::optional<std::string_view> id;
    const JobRegistry::Job* registered = nullptr;
    bool from_registration = false;  // the wire does not show the id
    bool is_false = false;           // the id on the wire does not count
  };
  [[nodiscard]] JobOf job_of(const Address& client, const Identity& identity) const;
  void note_shadow(Match& match, const Rule& rule, const Sight& sight) const;
  void take_rule(Match& match, const Rule* rule, const Sight& sight) const;

  std::shared_ptr<const RuleSet> rules_;
  std::vector<std::string> hint_names_;  // those of the rules first
  std::optional<std::size_t> job_hint_;  // into hint_names_
  // The parts of a key beside all hints.
  Attributes looked_at_;
  bool looks_at_client_ = false;
  bool looks_at_uid_ = false;
  bool has_jobs_ = false;  // there are registered jobs
  std::uint8_t default_class_;
  const JobRegistry* jobs_;
  JobIds ids_;
  std::vector<Address> node_;
};

}  // namespace vpfs::stage
