#include "control/wire/requests.h"

#include <algorithm>
#include <iterator>

namespace vpfs::control {
namespace {

template <Rights right>
Rights always(const Envelope& /*request*/) {
  return right;
}

Rights right_for_rules(const Envelope& request) {
  const Rule& rule = request.rule();
  const bool is_trial = rule.action() == Rule::APPLY && rule.dry_run();
  return is_trial || is_list(request) ? Rights::read : Rights::change;
}

Rights right_for_jobs(const Envelope& request) {
  return is_list(request) ? Rights::own : Rights::change;
}

Rights right_for_recordings(const Envelope& request) {
  const Record::Action action = request.record().action();
  return action == Record::SHOW || action == Record::READ ? Rights::read : Rights::change;
}

Rights right_inside(const Envelope& request) {
  const Envelope& inside = request.forward().request();
  return inside.has_forward() ? Rights::change : needed_right(inside);
}

constexpr RequestKind kKinds[] = {
    {.body = Envelope::kRule, .needs = right_for_rules, .forwarding = Forwarding::lists},
    {.body = Envelope::kJob, .needs = right_for_jobs, .forwarding = Forwarding::lists},
    // The owner answers these five with what the caller may see.
    {.body = Envelope::kStats, .needs = always<Rights::own>, .forwarding = Forwarding::always},
    {.body = Envelope::kWatch, .needs = always<Rights::own>},
    {.body = Envelope::kWhy, .needs = always<Rights::own>, .forwarding = Forwarding::always},
    {.body = Envelope::kPast, .needs = always<Rights::own>, .forwarding = Forwarding::always},
    {.body = Envelope::kSeries, .needs = always<Rights::read>, .forwarding = Forwarding::always},
    {.body = Envelope::kLedger, .needs = always<Rights::own>, .forwarding = Forwarding::always},
    {.body = Envelope::kRecord, .needs = right_for_recordings, .forwarding = Forwarding::always},
    {.body = Envelope::kInForce, .needs = always<Rights::read>, .forwarding = Forwarding::always},
    {.body = Envelope::kStatus, .needs = always<Rights::read>, .forwarding = Forwarding::always},
    {.body = Envelope::kReload, .needs = always<Rights::change>, .forwarding = Forwarding::always},
    {.body = Envelope::kDrain, .needs = always<Rights::change>, .forwarding = Forwarding::always},
    {.body = Envelope::kUpgrade, .needs = always<Rights::change>},
    {.body = Envelope::kBypass, .needs = always<Rights::change>, .forwarding = Forwarding::always},
    {.body = Envelope::kForward, .needs = right_inside},
    {.body = Envelope::kCycle, .needs = always<Rights::change>, .is_audited = false},
    {.body = Envelope::kSite, .needs = always<Rights::change>},
    {.body = Envelope::kMemberView, .needs = always<Rights::change>},
};

}  // namespace

const RequestKind* find_request(const Envelope& message) {
  const auto* const kind = std::ranges::find(kKinds, message.body_case(), &RequestKind::body);
  return kind == std::end(kKinds) ? nullptr : kind;
}

Rights needed_right(const Envelope& request) {
  const RequestKind* const kind = find_request(request);
  return kind == nullptr ? Rights::change : kind->needs(request);
}

bool is_audited(const Envelope& request) {
  const RequestKind* const kind = find_request(request);
  return needed_right(request) == Rights::change && (kind == nullptr || kind->is_audited);
}

bool is_list(const Envelope& request) {
  const Rule::Action action = request.rule().action();
  if (request.has_rule()) return action == Rule::LIST || action == Rule::HISTORY;
  return request.has_job() && request.job().action() == Job::LIST;
}

}  // namespace vpfs::control
