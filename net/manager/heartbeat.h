#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "net/manager/manager_socket.h"

namespace vpfs::net {

// What a service manager hears of a program while it serves: that it is alive, that it reads its
// configuration again, that it ends. Does nothing for a program that no manager has started.
// Belongs to the thread of the context, whose own turns are a part of what it tells.
class Heartbeat {
 public:
  // Whether each thread that serves has turned since the last call. The manager hears nothing of a
  // program whose threads have not, and ends it after WatchdogSec.
  using Alive = std::function<bool()>;

  // Both outlive it. `takes_over`: see watchdog_period().
  Heartbeat(asio::io_context& context, Alive alive, bool takes_over = false);
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void start();
  // Tells nothing more: another process is the main one.
  void stop();

  void reloading(TimePoint now);
  void reloaded();
  void ending();

 private:
  void beat();
  void beat_later();
  // The manager may be busy: then it hears it a little later.
  void tell(std::string text);
  void tell_again();

  const Alive alive_;
  const std::optional<ManagerSocket> manager_;
  const std::optional<Duration> period_;
  asio::steady_timer beat_timer_;
  asio::steady_timer again_timer_;
  std::deque<std::string> untold_;
  bool is_stopped_ = false;
  bool is_late_ = false;  // the log has it
};

}  // namespace vpfs::net
