#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage/address.h"
#include "stage/config.h"
#include "stage/job_registry.h"

namespace vpfs::stage {

// What rules look at. `hints` has a value (or nothing) for each of Classifier::hint_names(), in
// that order; borrowed.
struct Identity {
  IoKind kind = IoKind::read;
  std::int64_t file_system = 0;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> node = std::nullopt;
  std::optional<std::uint32_t> target = std::nullopt;
  std::optional<std::uint32_t> owner = std::nullopt;
  std::string directory = {};  // "": not known
  std::vector<std::optional<std::string>> hints = {};

  bool operator==(const Identity&) const = default;
};

// The ordered rules of the configuration. Immutable once made, so all workers share one.
class Classifier {
 public:
  // REQUIRES: `rules` passed parse_config() without errors. With `jobs`, which outlives this, a job
  // id that is not registered for whoever shows it counts as not there.
  explicit Classifier(const std::vector<RuleConfig>& rules, std::uint8_t default_class = 0,
                      const JobRegistry* jobs = nullptr);

  // The names of all hints that some rule looks at: an identity needs no others.
  [[nodiscard]] const std::vector<std::string>& hint_names() const { return hint_names_; }
  // Whether some rule looks at the uid.
  [[nodiscard]] bool looks_at_uid() const { return looks_at_uid_; }

  struct Match {
    std::string virtual_pfs;    // "job-42": the name with all fields filled in
    std::string declared_name;  // "job-{jobid}": as the configuration has it
    std::uint8_t traffic_class = 0;
    bool name_refused = false;  // what the request says makes no good name, so it is "default"
    bool job_not_registered = false;  // its job id was not looked at
  };
  // The first rule that matches; "default" if none does, and if the name that the request fills in
  // is no good one (is_good_name()).
  [[nodiscard]] Match classify(const Address& client, const Identity& identity) const;

 private:
  struct HintCondition {
    std::size_t index;  // into hint_names_
    std::string pattern;
  };
  struct Rule {
    std::vector<AddressBlock> clients;
    std::vector<HintCondition> hints;
    std::optional<IoKind> kind;
    std::vector<std::uint64_t> file_systems;
    std::vector<std::uint64_t> uids;
    std::vector<std::uint64_t> nodes;
    std::vector<std::uint64_t> targets;
    std::vector<std::uint64_t> owners;
    std::vector<std::string> directories;
    std::vector<Attribute> needed;  // by the name's fields
    std::string virtual_pfs;
    bool is_template = false;
    std::uint8_t traffic_class = 0;
  };

  [[nodiscard]] Match first_match(const Address& client, const Identity& identity) const;
  // The place among its hints of a job id that is not registered for it.
  [[nodiscard]] std::optional<std::size_t> false_job(const Address& client,
                                                     const Identity& identity) const;
  [[nodiscard]] static bool matches(const Rule& rule, const Address& client,
                                    const Identity& identity);
  [[nodiscard]] std::string fill_in(const Rule& rule, const Identity& identity) const;
  [[nodiscard]] bool demands_hint(const Rule& rule, std::string_view name) const;
  std::size_t index_of_hint(const std::string& name);

  std::vector<std::string> hint_names_;
  std::vector<Rule> rules_;
  std::uint8_t default_class_;
  const JobRegistry* jobs_;
  std::optional<std::size_t> job_hint_;  // into hint_names_
  bool looks_at_uid_ = false;
};

}  // namespace vpfs::stage
