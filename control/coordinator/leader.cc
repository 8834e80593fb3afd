#include "control/coordinator/leader.h"

#include <csignal>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/result.h"
#include "control/coordinator/office/signals.h"

namespace vpfs::coordinator {

Result<std::unique_ptr<Leader>> Leader::make(const Parts& parts) {
  std::unique_ptr<Leader> leader(new Leader(parts));
  Office& office = leader->office_;
  const Elected& elected = parts.elected;
  LaterTerm::Begin begin_later_term;
  if (parts.later_term_after && leader->config_.parent) {
    begin_later_term = [self = leader.get()](std::uint64_t least) {
      self->least_term_ = least;
      self->ending_ = Ending::later;
      self->context_.stop();
    };
  }
  auto coordinator =
      Coordinator::make({.context = leader->context_,
                         .clock = parts.clock,
                         .config = leader->config_,
                         .options = parts.options,
                         .term = elected.own.term,
                         .incarnation = elected.own.incarnation,
                         .clear_from = elected.clear_from,
                         .records = elected.records,
                         .store = office.store(),
                         .may_send = [&office] { return office.holds(); },
                         .over = [&office](const std::string& why) { office.end(why); },
                         .begin_later_term = std::move(begin_later_term),
                         .later_term_after = parts.later_term_after.value_or(Duration::zero()),
                         .store_problem = [&office] { return office.trouble(); },
                         .confirm = office.confirmation(),
                         .own_part = parts.own_part,
                         .leads_members = leader->config_.members.has_value(),
                         .gone_member = elected.gone_member});
  VPFS_TRY(coordinator);
  leader->coordinator_ = std::move(*coordinator);
  return leader;
}

Leader::Leader(const Parts& parts)
    : config_(parts.config),
      term_(parts.elected.own.term),
      signals_(context_, parts.signals),
      heartbeat_(context_, control::turns_of(parts.own_part)),
      office_(context_, parts.clock, parts.store, parts.elected.tenure,
              [this](const std::string& why) { lose(why); }) {}

Leader::Ending Leader::run() {
  signals_.start([this](int signal) { take_signal(signal); });
  office_.start();
  coordinator_->start();
  heartbeat_.start();
  context_.run();
  office_.stop();
  coordinator_->stop();
  return ending_;
}

void Leader::lose(const std::string& why) {
  spdlog::warn("term {} is over: {}", term_, why);
  ending_ = Ending::lost;
  context_.stop();
}

void Leader::take_signal(int signal) {
  if (goes_on_after(signal)) {
    if (signal == SIGUSR2) coordinator_->reopen_audit();
    return;
  }
  spdlog::info("{}: ending; stages go on alone when their leases end",
               signal == SIGTERM ? "SIGTERM" : "SIGINT");
  heartbeat_.ending();
  context_.stop();
}

}  // namespace vpfs::coordinator
