// The part of Host that hands it over to another process.
#include <filesystem>
#include <utility>

#include <unistd.h>

#include "control/host/host.h"
#include "control/wire/protocol.h"

namespace vpfs::control {

void Host::run_or_defer(std::function<void()> what) {
  if (hand_ == Hand::offered) {
    deferred_.push_back(std::move(what));
  } else if (hand_ == Hand::none) {
    what();
  }
}

// A program that is named runs as the user of this one.
void Host::upgrade(const Upgrade& request, const Caller& caller, const Answer& answer) {
  const bool is_trusted = caller.uid && (*caller.uid == 0 || *caller.uid == ::geteuid());
  if (!request.binary().empty() && !is_trusted) {
    return answer(make_error(
        Error::NOT_PERMITTED, "binary",
        "only root and the user of the running program may name a program that takes over, and "
        "over the UNIX socket"));
  }
  program_.upgrade(request.binary(), [answer](const Result<std::string>& outcome) {
    if (!outcome) return answer(make_error(Error::UNAVAILABLE, "", outcome.error().message));
    Ack ack;
    ack.set_text(*outcome);
    answer(std::move(ack));
  });
}

Host::Offer Host::offer() {
  hand_ = Hand::offered;
  administration_.tick();
  administration_.finish();
  write_status();
  Offer offer;
  offer.descriptors = control_.descriptors();
  const auto locks = live_.calls->descriptors();
  offer.descriptors.insert(offer.descriptors.end(), locks.begin(), locks.end());
  if (status_lock_.native_handle() >= 0) {
    offer.descriptors.emplace_back(StatusLock::kName, status_lock_.native_handle());
  }
  offer.state.set("incarnation", control_.incarnation());
  offer.state.set("started_at", static_cast<std::uint64_t>(seconds_since_epoch(started_)));
  offer.state.set("book", live_.state->book().snapshot());
  std::error_code lost;
  const auto journal = std::filesystem::absolute(config().journal, lost);
  if (!lost && live_.state->is_kept()) offer.state.set("journal", journal.string());
  if (config().history.empty()) offer.state.set("history", administration_.history());
  return offer;
}

void Host::withdraw() {
  hand_ = Hand::none;
  control_.refuse_cycles(false);
  for (const auto& what : std::exchange(deferred_, {})) what();
  for (const Waiting& each : std::exchange(waiting_, {})) {
    ask(each.request, each.caller, each.answer);
  }
}

void Host::leave() {
  hand_ = Hand::left;
  heartbeat_.stop();
  deferred_.clear();
  // Whoever asks again after that reaches the other process.
  control_.leave();
  for (const Waiting& each : std::exchange(waiting_, {})) refuse_late(each.answer);
  status_timer_.cancel();
  ends_timer_.cancel();
  retire_timer_.cancel();
}

void Host::refuse_late(const Answer& answer) {
  answer(taken_over());
}

void Host::save(SavedState& to) {
  control_.refuse_cycles(true);
  to.set("term", control_.term());
  to.set("reloads", reloads_.tried);
  to.set("reloads_failed", reloads_.failed);
}

void Host::take_on(const SavedState& from) {
  control_.set_term(from.number("term"));
  reloads_.tried = from.number("reloads");
  reloads_.failed = from.number("reloads_failed");
}

}  // namespace vpfs::control
