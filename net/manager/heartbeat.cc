#include "net/manager/heartbeat.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/units.h"

namespace vpfs::net {
namespace {

// So that a beat that the manager has no room for, or that comes late, is not missed.
constexpr int kBeatsInPeriod = 4;
constexpr Duration kAgain = std::chrono::milliseconds(20);

}  // namespace

Heartbeat::Heartbeat(asio::io_context& context, Alive alive, bool takes_over)
    : alive_(std::move(alive)),
      manager_(ManagerSocket::of_environment()),
      period_(manager_ ? watchdog_period(takes_over) : std::nullopt),
      beat_timer_(context),
      again_timer_(context) {}

void Heartbeat::start() {
  if (!period_) return;
  // What the program did before, as taking connections over, tells nothing of its threads.
  (void)alive_();
  (void)manager_->try_to_tell("WATCHDOG=1\n");
  beat_later();
}

void Heartbeat::stop() {
  is_stopped_ = true;
  beat_timer_.cancel();
  again_timer_.cancel();
}

void Heartbeat::reloading(TimePoint now) {
  tell(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\n", microseconds_of(now.time_since_epoch())));
}

void Heartbeat::reloaded() {
  tell("READY=1\n");
}

void Heartbeat::ending() {
  tell("STOPPING=1\n");
}

void Heartbeat::beat() {
  if (is_stopped_) return;
  const bool is_alive = alive_();
  if (is_alive) (void)manager_->try_to_tell("WATCHDOG=1\n");
  if (!is_alive && !is_late_) {
    spdlog::error("a thread has not turned for {}: the service manager hears nothing until it does",
                  vpfs::to_string(*period_ / kBeatsInPeriod));
  }
  if (is_alive && is_late_) spdlog::warn("all threads turn again");
  is_late_ = !is_alive;
  beat_later();
}

void Heartbeat::beat_later() {
  beat_timer_.expires_after(*period_ / kBeatsInPeriod);
  beat_timer_.async_wait([this](std::error_code error) {
    if (!error) beat();
  });
}

void Heartbeat::tell(std::string text) {
  if (!manager_ || is_stopped_) return;
  untold_.push_back(std::move(text));
  if (untold_.size() == 1) tell_again();
}

void Heartbeat::tell_again() {
  if (is_stopped_) return;
  for (; !untold_.empty(); untold_.pop_front()) {
    const bool is_told = manager_->try_to_tell(untold_.front());
    if (!is_told && (errno == EAGAIN || errno == EINTR)) break;
  }
  if (untold_.empty()) return;
  again_timer_.expires_after(kAgain);
  again_timer_.async_wait([this](std::error_code error) {
    if (!error) tell_again();
  });
}

}  // namespace vpfs::net
