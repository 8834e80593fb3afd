#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/handover/giver.h"
#include "control/handover/restart.h"
#include "net/descriptor.h"
#include "net/inherited.h"
#include "net/unix_socket.h"

namespace vpfs::control {

// A running program's side of a hot restart, whatever its I/O: the socket where a new process takes
// over, the program that is started for that, and the thread of the hand-over. What is handed over
// is the GivingProgram's. Belongs to the main thread, except where a method says otherwise.
class Successor {
 public:
  struct Parts {
    asio::io_context& context;  // of the main thread
    GivingProgram& program;
    const Clock& clock;
    std::string_view role;      // "proxy"
    std::function<void()> end;  // nothing of the program is left; the main thread calls it
  };

  // All outlive it.
  explicit Successor(Parts parts) : parts_(std::move(parts)) {}
  ~Successor() { stop(); }
  Successor(const Successor&) = delete;
  Successor& operator=(const Successor&) = delete;

  // Opens the socket at `path`, or takes it from the process before. The error names the path.
  [[nodiscard]] Result<void> open(const std::string& path, net::Inherited* inherited);
  void start(std::function<Restart()> settings);
  // The socket and its lock, by the names that open() looks for.
  [[nodiscard]] std::vector<std::pair<std::string, int>> listeners() const;
  // The host has ended. Returns when the thread has.
  void stop();

  // Starts a program that takes over, with these arguments and the socket behind --take-over.
  // Tells how it went: Error, or a sentence. `binary`: "" is this program's own.
  using Told = std::function<void(Result<std::string> outcome)>;
  void start_program(const std::string& binary, std::span<const std::string> arguments, Told told);

  // For GivingProgram::leave(): another process has taken over. The first from any thread, before
  // anything else; the second with what the log and the administrator are told.
  void note_leaving() { has_left_ = true; }
  void leave(const std::string& line);
  [[nodiscard]] bool has_left() const { return has_left_; }
  // The program ends: the thread of the hand-over should not wait. Any thread.
  [[nodiscard]] bool stopping() const { return stopping_; }
  // From the thread of the hand-over: runs it on the main thread, and waits until it is done, the
  // program ends, or the deadline has passed, since that thread may wait for a disk. Returns
  // whether it has run; otherwise it never will.
  bool on_main(const std::function<void()>& what, TimePoint deadline = kNever);

 private:
  void accepted(net::UnixSocket socket);
  void serve(net::Descriptor socket);
  void ended(const Result<HandedOver>& outcome);
  void watch_program();
  void end_program();
  void tell(Result<std::string> outcome);

  Parts parts_;
  std::function<Restart()> settings_;
  std::optional<net::UnixListener> listener_;
  HandoverTimes times_;
  net::Descriptor peer_;  // to end the thread's waits
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> has_left_ = false;
  bool busy_ = false;
  std::jthread thread_;

  // A program that this one has started, until it has taken over, or not.
  Told told_;
  int program_ = -1;
  TimePoint program_end_;  // when it is ended if it does not take over
  std::optional<asio::steady_timer> program_timer_;
};

}  // namespace vpfs::control
