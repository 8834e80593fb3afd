#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "base/config_reader.h"
#include "stage/book/composer.h"
#include "stage/book/operation.h"

namespace vpfs::stage {

// What the rules of a set are read against. Rules that declare a virtual PFS may come after those
// that send to it. The work for one rule does not depend on how many there are.
class SetContexts {
 public:
  SetContexts(const ApplySet& set, const Config& file, const BookState& state);

  // Valid until the next call.
  [[nodiscard]] const Config& of(const RuleText& rule);

 private:
  void declare(const std::string& name);

  Config declaring_;  // all virtual PFSes that rules cannot declare any more
  Config nearby_;     // only that one that the rule at hand names, if it is declared
  std::unordered_set<std::string> declared_;
  std::unordered_set<std::string> targets_;  // of `vpfs=`
};

// Whether the share of this name is one of the file's, so that the set changes it.
[[nodiscard]] bool is_of_file(const Config& file, std::string_view virtual_pfs);

// Reads a set of rules in the grammar of the configuration file:
//
//   virtual_pfs:
//     pool: {weight: 4}
//     default: {rate: 100 MiB/s}
//   rules:
//     - {name: backup, match: "client=10.0.0.9", rate: 100 MiB/s, for: 2h}
//     - {name: night, match: {jobid: [a, b], op: read}, virtual_pfs: pool}
//
// Each rule has a name, because `rule change` and `rule stop` need it. Mistakes in single rules are
// reported at their lines; RuleBook::prepare() checks the set as a whole. `read` has the rules that
// were read already, and gets the others; may be null.
[[nodiscard]] ApplySet read_rule_set(std::string_view text, const Config& file,
                                     const BookState& state, RuleParser parse, ConfigErrors& errors,
                                     ParsedRules* read = nullptr);

}  // namespace vpfs::stage
