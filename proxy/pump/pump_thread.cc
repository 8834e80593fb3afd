#include "proxy/pump/pump_thread.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/pump/pump.h"

namespace vpfs::proxy {

PumpThread::PumpThread(net::EpollSet& set, const Clock& clock, SocketCalls& calls,
                       std::function<void()> at_end)
    : set_(set), clock_(clock), calls_(calls), at_end_(std::move(at_end)), scratch_(kScratchSize) {}

PumpThread::Event::Event(PumpThread& thread) : thread_(thread) {
  VPFS_ASSERT(!std::exchange(thread.in_event_, true));
  thread.now_ = thread.clock_.now();
  ++thread.event_;
}

PumpThread::Event::~Event() {
  thread_.at_end_();
  thread_.in_event_ = false;
}

void PumpThread::forget(const Pump& pump) {
  std::erase(to_go_on_, &pump);
  std::ranges::replace(going_on_, const_cast<Pump*>(&pump), nullptr);
}

void PumpThread::go_on() {
  going_on_.swap(to_go_on_);
  for (Pump*& each : going_on_) {
    if (Pump* const pump = std::exchange(each, nullptr)) pump->go_on();
  }
  going_on_.clear();
}

}  // namespace vpfs::proxy
