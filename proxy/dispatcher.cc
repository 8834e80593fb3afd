#include "proxy/dispatcher.h"

#include <algorithm>
#include <string>
#include <utility>

namespace vpfs::proxy {
namespace {

// How many queued requests a look at one client passes. The lock is held meanwhile.
constexpr std::size_t kMostLooked = 256;

// Whether others wait for the slots among which `io` has or had one.
bool contends(const stage::Stage& stage, const PendingIo& io, bool any_client) {
  const stage::Stage::Contenders found = stage.contenders(io);
  if (any_client) return found.others || found.own > 0;
  // Those of the same client at the start of the queue; requests beyond count as others'.
  std::size_t same = 0;
  for (const stage::Held* each = found.oldest_own; each != nullptr && same < kMostLooked;
       each = static_cast<const stage::Held*>(each->next_queued)) {
    const auto& queued = static_cast<const PendingIo&>(*each);
    if (queued.app != io.app || queued.client_address != io.client_address) break;
    ++same;
  }
  return found.others || same < found.own;
}

}  // namespace

Dispatcher::Dispatcher(WorkerSettingsPtr settings, std::size_t workers, WakeUp wake_up,
                       TimePoint now)
    : StageGate(settings->config, now),
      wake_up_(std::move(wake_up)),
      inboxes_(workers),
      epochs_(workers),
      settings_(std::move(settings)) {}

void Dispatcher::use(Config config, TimePoint now) {
  auto settings = std::make_shared<const WorkerSettings>(std::move(config), settings_.get());
  act(now, [&](stage::Stage& stage, TimePoint at) {
    stage.reconfigure(settings->config, at);
    settings_before_.swap(settings_);
    settings_.swap(settings);
    forget_numbers();
  });
  ask_all_again();
}

void Dispatcher::reconfigure(const stage::Config& config, TimePoint now) {
  use(control::with_stage(settings_->config, config), now);
}

void Dispatcher::ask_all_again() {
  for (std::size_t worker = 0; worker < inboxes_.size(); ++worker) wake_up_(worker);
}

bool Dispatcher::forgot_numbers() const {
  return std::ranges::all_of(epochs_, [this](std::uint64_t each) { return each == epoch_; });
}

// Puts the request into the inbox of the worker that owns its session.
void Dispatcher::hand_over(stage::Held& held) {
  auto& io = static_cast<PendingIo&>(held);
  std::vector<PendingIo*>& inbox = inboxes_[io.worker];
  if (inbox.empty()) to_wake_.push_back(io.worker);
  inbox.push_back(&io);
}

Dispatcher::Next Dispatcher::turn(std::size_t worker, const Turn& turn, TimePoint now,
                                  std::vector<PendingIo*>& released) {
  Next next;
  std::vector<std::size_t> wake;
  std::vector<std::string> notices;
  inspect(now, [&](stage::Stage& stage, TimePoint at) {
    for (PendingIo* io : turn.gave_slots_up) {
      if (stage.give_up_slot(*io, at)) ++next.slots_given_up;
    }
    for (PendingIo* io : turn.moved) stage.has_moved(*io, {io->moved}, at);
    for (PendingIo* io : turn.abandoned) abandon(stage, *io, at);
    for (const Turn::End& each : turn.ended) {
      stage.end(*each.io, {.moved = {each.bytes}, .failed = each.failed, .refused = each.refused},
                at);
    }
    for (const Turn::Parked& each : turn.parked) stage.park(*each.io, each.whose, at);
    for (PendingIo* io : turn.arrived) stage.arrive(*io, at);
    const TimePoint until = frozen_ ? kNever : stage.release(at, let_go_);
    if (until != kNever) next.until = until;
    for (stage::Held* io : let_go_) hand_over(*io);
    let_go_.clear();
    for (PendingIo* io : inboxes_[worker]) stage::Stage::took_over(*io);
    released.insert(released.end(), inboxes_[worker].begin(), inboxes_[worker].end());
    inboxes_[worker].clear();
    std::erase(to_wake_, worker);
    epochs_[worker] = turn.epoch;
    next.epoch = epoch_;
    if (turn.epoch != epoch_) next.settings = settings_;
    if (!to_wake_.empty()) wake = std::exchange(to_wake_, {});
    notices = stage.take_notices();
  });
  for (const std::size_t other : wake) wake_up_(other);
  tell(notices);
  return next;
}

bool Dispatcher::others_wait(const std::vector<PendingIo*>& ios, bool any_client, TimePoint now) {
  bool others = false;
  inspect(now, [&](const stage::Stage& stage, TimePoint) {
    const PendingIo* before = nullptr;
    for (const PendingIo* io : ios) {
      // Most are of one application, so the answer is that of the one before.
      const bool is_alike = before != nullptr && before->app == io->app &&
                            before->lane == io->lane && before->unscheduled == io->unscheduled;
      if (!is_alike && contends(stage, *io, any_client)) {
        others = true;
        return;
      }
      before = io;
    }
  });
  return others;
}

void Dispatcher::freeze(bool on) {
  inspect(TimePoint{}, [&](stage::Stage&, TimePoint) { frozen_ = on; });
  if (!on) ask_again();
}

void Dispatcher::readmit(PendingIo& io, TimePoint now) {
  inspect(now, [&](stage::Stage& stage, TimePoint at) { stage.readmit(io, at); });
}

void Dispatcher::arrive(const std::vector<PendingIo*>& ios, TimePoint now) {
  inspect(now, [&](stage::Stage& stage, TimePoint at) {
    for (PendingIo* io : ios) stage.arrive(*io, at);
  });
}

void Dispatcher::abandon(stage::Stage& stage, PendingIo& io, TimePoint now) {
  if (io.state == PendingIo::State::excess || io.state == PendingIo::State::released) {
    std::erase(inboxes_[io.worker], &io);
  }
  io.held ? stage.withdraw(io, now) : stage.abandon(io, now, {io.moved});
}

void Dispatcher::abandon(const std::vector<PendingIo*>& ios, TimePoint now) {
  if (ios.empty()) return;
  inspect(now, [&](stage::Stage& stage, TimePoint at) {
    for (PendingIo* io : ios) abandon(stage, *io, at);
  });
}

std::vector<PendingIo*> Dispatcher::take_back(std::vector<PendingIo*> ios, TimePoint now) {
  if (ios.empty()) return ios;
  inspect(now, [&](stage::Stage& stage, TimePoint at) {
    std::erase_if(ios, [&](PendingIo* io) { return !stage.take_back(*io, at); });
  });
  return ios;
}

}  // namespace vpfs::proxy
