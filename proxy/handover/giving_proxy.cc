#include "proxy/handover/giving_proxy.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "proxy/session.h"

namespace vpfs::proxy {

using control::Belongings;
using control::HandedOver;
using control::PackedParcel;

namespace {

using namespace std::chrono_literals;

// The main thread ends without a word when a signal ends the program.
constexpr auto kBetweenLooks = 50ms;

}  // namespace

void GivingProxy::stop() {
  came_.notify_all();
  successor_.stop();
}

void GivingProxy::on_workers(
    const std::function<void(Worker& worker, std::function<void()> done)>& each) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done_now;
    std::size_t missing = 0;
  };
  auto shared = std::make_shared<Shared>();
  shared->missing = parts_.workers.size();
  for (const std::unique_ptr<Worker>& worker : parts_.workers) {
    each(*worker, [shared] {
      const std::lock_guard lock(shared->mutex);
      --shared->missing;
      shared->done_now.notify_all();
    });
  }
  std::unique_lock lock(shared->mutex);
  while (shared->missing > 0 && !successor_.stopping())
    shared->done_now.wait_for(lock, kBetweenLooks);
}

Belongings GivingProxy::offer() {
  Belongings belongings;
  successor_.on_main([&] {
    control::Host::Offer offer = parts_.host.offer();
    belongings.state = std::move(offer.state);
    belongings.descriptors = std::move(offer.descriptors);
    belongings.descriptors.emplace_back(kListener, parts_.listener.native_handle());
    for (auto& each : successor_.listeners()) belongings.descriptors.push_back(std::move(each));
  });
  belongings.state.add_list("learnt").push_back(parts_.shared.save_learnt());
  return belongings;
}

void GivingProxy::withdraw() {
  successor_.on_main([this] { parts_.host.withdraw(); });
}

void GivingProxy::freeze() {
  parts_.dispatcher.freeze(true);
  on_workers(
      [](Worker& worker, std::function<void()> done) { worker.take_released(std::move(done)); });
}

std::size_t GivingProxy::outstanding() {
  return successor_.stopping() ? 0 : parts_.dispatcher.outstanding();
}

Result<std::vector<PackedParcel>> GivingProxy::pack() {
  // From here on the new process may have the connections, and this one may crash.
  if (parts_.shared.keeper) parts_.shared.keeper->pause();
  auto all = std::make_shared<std::pair<std::mutex, std::vector<PackedParcel>>>();
  on_workers([all](Worker& worker, std::function<void()> done) {
    worker.pack([all, done = std::move(done)](std::vector<Worker::Packed> packed) {
      {
        const std::lock_guard lock(all->first);
        for (Worker::Packed& each : packed) {
          all->second.push_back(
              {.state = std::move(each.state),
               .descriptors = {each.descriptors.begin(), each.descriptors.end()}});
        }
      }
      done();
    });
  });
  const std::lock_guard lock(all->first);
  return std::move(all->second);
}

Result<SavedState> GivingProxy::state(TimePoint end) {
  SavedState state;
  if (!successor_.on_main([&] { parts_.host.save(state); }, end)) {
    return fail("the main thread is busy, as with a disk that does not answer");
  }
  state.add_list("proxy").push_back(parts_.shared.save_counters());
  SavedState stage;
  parts_.dispatcher.inspect(parts_.clock.now(),
                            [&](stage::Stage& of, TimePoint now) { stage = of.save(now); });
  state.add_list("stage").push_back(std::move(stage));
  return state;
}

void GivingProxy::thaw() {
  on_workers([](Worker& worker, std::function<void()> done) { worker.unpack(std::move(done)); });
  parts_.dispatcher.freeze(false);
  if (parts_.shared.keeper) parts_.shared.keeper->go_on();
}

std::string GivingProxy::why_not() {
  if (successor_.stopping() || parts_.shared.draining) return "the program drains";
  return "";
}

void GivingProxy::leave(const HandedOver& done) {
  successor_.note_leaving();
  parts_.shared.leaving = true;
  on_workers([this](Worker& worker, std::function<void()> left) {
    auto more = [this, &worker](std::vector<Worker::Packed> packed) {
      const std::lock_guard lock(mutex_);
      for (Worker::Packed& each : packed) {
        more_.push_back({.state = std::move(each.state),
                         .descriptors = {each.descriptors.begin(), each.descriptors.end()},
                         .sent = [&worker, session = each.session](bool arrived) {
                           worker.sent_off(session, arrived);
                         }});
      }
      came_.notify_all();
    };
    worker.leave_packed(std::move(more), std::move(left));
  });
  if (parts_.shared.keeper) parts_.shared.keeper->leave();
  successor_.on_main([&] {
    parts_.listener.close();
    const std::size_t stayed = left();
    const std::string line = fmt::format(
        "process {} has taken over: {} connections within {:.1f} ms; {} more go there when they "
        "come to a boundary",
        done.pid, done.parcels, in_seconds(done.paused) * 1000, stayed);
    successor_.leave(line);
    parts_.host.leave();
  });
}

std::vector<PackedParcel> GivingProxy::wait_for_more(Duration patience) {
  std::unique_lock lock(mutex_);
  if (more_.empty()) came_.wait_for(lock, patience);
  return std::exchange(more_, {});
}

std::optional<SavedState> GivingProxy::changes() {
  std::optional<SavedState> changes;
  parts_.dispatcher.inspect(
      parts_.clock.now(), [&](stage::Stage& of, TimePoint now) { changes = of.save_changes(now); });
  if (auto counters = parts_.shared.save_counter_changes()) {
    if (!changes) changes.emplace();
    changes->add_list("proxy").push_back(std::move(*counters));
  }
  return changes;
}

std::size_t GivingProxy::left() {
  if (successor_.stopping()) return 0;
  // What the process before has left comes here, and goes on to the next one.
  const std::size_t to_come = parts_.shared.has_predecessor ? 1 : 0;
  return parts_.shared.counters.connections_open + to_come;
}

}  // namespace vpfs::proxy
