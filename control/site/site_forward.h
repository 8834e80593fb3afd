#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/coordinator/links/stage_requests.h"
#include "control/site/site_stages.h"
#include "control/wire/control.pb.h"
#include "control/wire/framing.h"
#include "control/wire/rights.h"

namespace vpfs::coordinator {

// Asks stages on behalf of administrators, and of the coordinator above. Belongs to the
// coordinator's thread.
class SiteForward {
 public:
  struct Limits {
    Duration patience = std::chrono::seconds(2);
    // For aggregators, which wait for their stages.
    Duration patience_with_aggregators = std::chrono::seconds(3);
    std::size_t at_once = 8;
    std::size_t asked_again = 64;       // stages of one request; each looks through all stages
    std::size_t at_once_of_others = 4;  // of those, of callers that see only own jobs
    std::size_t most_bytes = control::kMostAnswer - 1024 * 1024;  // of all answers
  };
  // A ForwardReply, or an Error.
  using Done = std::function<void(control::Envelope answer)>;

  // Both outlive it.
  SiteForward(const SiteStages& stages, StageRequests& requests)
      : SiteForward(stages, requests, Limits()) {}
  SiteForward(const SiteStages& stages, StageRequests& requests, const Limits& limits)
      : stages_(stages), requests_(requests), limits_(limits) {}

  // Calls `done` once, now or later. The port has checked the caller's rights. Callers with
  // Rights::own ask as themselves.
  void forward(const control::Forward& request, const control::Caller& caller, Done done);
  // The same for the coordinator above, which has checked its caller.
  void forward(const control::Forward& request, Done done);

  // Why a request cannot be asked of stages this way; nothing: it can.
  [[nodiscard]] static std::optional<control::Error> problem_of(const control::Envelope& request);

 private:
  struct Run;

  void start(const control::Forward& request, bool is_of_others, Done done);
  [[nodiscard]] bool may_ask_again(const Run& run, const std::string& name,
                                   const control::Envelope& answer) const;
  // Asks a stage once it is back. If it does not come back, and is none of the configuration, only
  // one that was named is missed.
  void ask_again(const std::shared_ptr<Run>& run, const std::string& name, bool named);
  // An aggregator is asked for these of its stages; none: all.
  void ask(const std::shared_ptr<Run>& run, const SiteStages::Member& stage,
           const control::Forward& request, const std::vector<std::string>& of_aggregator);
  void came(Run& run, const SiteStages::Member& stage, const control::Envelope& answer) const;
  void finish(Run& run);

  const SiteStages& stages_;
  StageRequests& requests_;
  const Limits limits_;
  std::size_t running_ = 0;
  std::size_t of_others_ = 0;
};

}  // namespace vpfs::coordinator
