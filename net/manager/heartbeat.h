#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "net/manager/manager_socket.h"

namespace vpfs::net {

// What a service manager hears of a program while it serves: that it is alive, that it reads its
// configuration again, that it ends. Does nothing for a program that no manager has started.
// Belongs to the thread of the context.
class Heartbeat {
 public:
  // Whether the turns of the context are a part of what it tells.
  enum class Beats : std::uint8_t {
    with_the_context,
    // They are not: a thread of its own tells it. For a program that serves while the context waits
    // for a disk. The log says that the context does not turn.
    without_it,
  };
  // Whether each thread that serves has turned since the last call. The manager hears nothing of a
  // program whose threads have not, and ends it after WatchdogSec. Called by the thread that beats.
  using Alive = std::function<bool()>;

  // Both outlive it. `takes_over`: see watchdog_period().
  Heartbeat(asio::io_context& context, Alive alive, bool takes_over = false,
            Beats beats = Beats::with_the_context);
  ~Heartbeat() { end_beats(); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void start();
  // Tells nothing more: another process is the main one.
  void stop();
  // The context runs no more: `alive` is not called from now on. Idempotent.
  void end_beats();

  void reloading(TimePoint now);
  void reloaded();
  void ending();

 private:
  void beat();
  void beat_later();
  void beat_by_itself();
  void look_at_context();
  // The manager may be busy: then it hears it a little later.
  void tell(std::string text);
  void tell_again();

  const Alive alive_;
  const std::optional<ManagerSocket> manager_;
  const std::optional<Duration> period_;
  asio::io_context& context_;
  asio::steady_timer beat_timer_;
  asio::steady_timer again_timer_;
  std::deque<std::string> untold_;
  std::atomic<bool> is_stopped_ = false;
  bool is_late_ = false;  // the log has it
  bool by_itself_;
  std::thread thread_;  // that beats by itself, and what follows with it
  std::mutex mutex_;    // guards the following
  bool is_ended_ = false;
  std::condition_variable ended_;
  const std::shared_ptr<std::atomic<bool>> context_turned_;  // with what is posted there
  bool context_is_late_ = false;                             // the log has it
};

}  // namespace vpfs::net
