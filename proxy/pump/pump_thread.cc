#include "proxy/pump/pump_thread.h"

#include <utility>

#include "base/check.h"
#include "proxy/pump/pump.h"

namespace vpfs::proxy {

PumpThread::PumpThread(const Clock& clock, SocketCalls& calls, std::function<void()> at_end)
    : clock_(clock), calls_(calls), at_end_(std::move(at_end)), scratch_(kScratchSize) {}

PumpThread::Event::Event(PumpThread& thread) : thread_(thread) {
  VPFS_ASSERT(!std::exchange(thread.in_event_, true));
  thread.now_ = thread.clock_.now();
  ++thread.event_;
}

PumpThread::Event::~Event() {
  thread_.at_end_();
  thread_.in_event_ = false;
}

void PumpThread::start_waits() {
  for (Pump* pump : to_watch_) pump->watch();
  to_watch_.clear();
}

}  // namespace vpfs::proxy
