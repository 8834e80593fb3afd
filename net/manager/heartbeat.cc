#include "net/manager/heartbeat.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "base/units.h"
#include "net/start_thread.h"

namespace vpfs::net {
namespace {

// So that a beat that the manager has no room for, or that comes late, is not missed.
constexpr int kBeatsInPeriod = 4;
constexpr Duration kAgain = std::chrono::milliseconds(20);

// The log may be on the disk that hangs, and a thread that waits for it does not beat.
void say(spdlog::level::level_enum level, std::string text) {
  Result<std::thread> thread =
      start_thread([level, text = std::move(text), log = spdlog::default_logger()] {
        if (log != nullptr) log->log(level, "{}", text);
      });
  if (thread) thread->detach();
}

}  // namespace

Heartbeat::Heartbeat(asio::io_context& context, Alive alive, bool takes_over, Beats beats)
    : alive_(std::move(alive)),
      manager_(ManagerSocket::of_environment()),
      period_(manager_ ? watchdog_period(takes_over) : std::nullopt),
      context_(context),
      beat_timer_(context),
      again_timer_(context),
      by_itself_(beats == Beats::without_it),
      context_turned_(std::make_shared<std::atomic<bool>>(true)) {}

void Heartbeat::start() {
  if (!period_) return;
  // What the program did before, as taking connections over, tells nothing of its threads.
  (void)alive_();
  (void)manager_->try_to_tell("WATCHDOG=1\n");
  if (by_itself_) {
    Result<std::thread> thread = start_thread([this] { beat_by_itself(); });
    if (thread) {
      thread_ = std::move(*thread);
    } else {
      by_itself_ = false;
    }
  }
  if (!by_itself_) beat_later();
}

void Heartbeat::end_beats() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    ended_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Heartbeat::beat_by_itself() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, *period_ / kBeatsInPeriod, [this] { return is_ended_; })) {
    lock.unlock();
    beat();
    look_at_context();
    lock.lock();
  }
}

void Heartbeat::look_at_context() {
  const bool has_turned = context_turned_->exchange(false);
  if (!has_turned && !context_is_late_) {
    say(spdlog::level::err,
        fmt::format("the main thread has not turned for {}, maybe because of a disk: "
                    "administrators, the status and new connections wait, and requests are served",
                    vpfs::to_string(*period_ / kBeatsInPeriod)));
  }
  if (has_turned && context_is_late_) say(spdlog::level::warn, "the main thread turns again");
  if (has_turned) asio::post(context_, [turned = context_turned_] { *turned = true; });
  context_is_late_ = !has_turned;
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
  if (!by_itself_) beat_later();
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
