#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/allocation/cycle_state.h"
#include "control/coordinator/config/config.h"
#include "control/wire/control.pb.h"
#include "stage/config/config.h"

namespace vpfs::coordinator {

// What the administrators give a virtual PFS on all stages together.
struct Entitlement {
  std::optional<std::uint32_t> weight;  // nothing: as the stages have it
  allocation::Amounts most;             // zero: no bound

  bool operator==(const Entitlement&) const = default;
};
// By the names of virtual PFSes, or of their templates.
using Entitlements = std::map<std::string, Entitlement, std::less<>>;

// Those of the configuration file and of live rules. A live rule counts before the file.
[[nodiscard]] Entitlements entitlements_of(const std::vector<JobConfig>& file,
                                           const stage::Config& composed);

// Tells the jobs of a CycleState what they are entitled to. A template's entitlement is that of
// each virtual PFS that it has made on any stage, unless the virtual PFS has one of its own.
class SiteJobs {
 public:
  // `state` outlives it.
  explicit SiteJobs(allocation::CycleState& state) : state_(state) {}

  void use(Entitlements entitlements);
  // A stage has announced these: tells the CycleState, and entitles those that it takes.
  void announced(allocation::StageId stage, const control::Flows& flows);
  // Forgets virtual PFSes of templates that no stage had in the last cycle nor when it was called
  // before. Call it now and then.
  void sweep();

  [[nodiscard]] std::size_t made() const { return made_.size(); }

 private:
  struct Made {
    std::string by;  // its template
    bool is_seen = true;
  };

  [[nodiscard]] const Entitlement* entitlement_of(const std::string& name,
                                                  const std::string& by) const;
  void set(const std::string& name, const Entitlement* entitlement);

  allocation::CycleState& state_;
  Entitlements entitlements_;
  std::map<std::string, Made, std::less<>> made_;  // by templates
  Entitlements told_;                              // what state_ has
};

}  // namespace vpfs::coordinator
