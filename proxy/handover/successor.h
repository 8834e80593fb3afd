#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/host/host.h"
#include "net/listener.h"
#include "net/unix_socket.h"
#include "proxy/dispatcher.h"
#include "proxy/handover/giver.h"
#include "proxy/shared_state.h"
#include "proxy/worker.h"

namespace vpfs::proxy {

// The running proxy's side of a hot restart: the socket where a new process takes over, and the
// hand-over itself, on a thread of its own. Belongs to the main thread, but what GivingProgram has.
class Successor final : private GivingProgram {
 public:
  struct Parts {
    control::Host& host;
    Dispatcher& dispatcher;
    SharedState& shared;
    std::vector<std::unique_ptr<Worker>>& workers;
    net::Listener& listener;
    const Clock& clock;
  };
  // The name of the proxy's listener in a hand-over.
  static constexpr const char* kListener = "proxy.listen";

  // All outlive it.
  explicit Successor(Parts parts) : parts_(parts) {}
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

  // Starts a program that takes over, and tells how it went: Error, or a sentence.
  using Told = std::function<void(Result<std::string> outcome)>;
  void start_program(const std::string& binary, const std::string& config_file, Told told);

  // Another process has taken over.
  [[nodiscard]] bool has_left() const { return has_left_; }

 private:
  // GivingProgram, from the thread of the hand-over.
  [[nodiscard]] Belongings offer() override;
  void withdraw() override;
  void freeze() override;
  [[nodiscard]] std::size_t outstanding() override;
  [[nodiscard]] std::vector<PackedConnection> pack() override;
  [[nodiscard]] SavedState state() override;
  void thaw() override;
  [[nodiscard]] std::string why_not() override;
  void leave(const HandedOver& done) override;
  [[nodiscard]] std::vector<PackedConnection> wait_for_more(Duration patience) override;
  [[nodiscard]] std::optional<SavedState> changes() override;
  [[nodiscard]] std::size_t left() override;

  void accepted(net::UnixSocket socket);
  void serve(net::Descriptor socket);
  void ended(const Result<HandedOver>& outcome);
  // Runs it on the main thread, and waits until it is done, or the program ends.
  void on_main(const std::function<void()>& what);
  // Calls each(worker, done) and waits until each has called `done`, or the program ends.
  void on_workers(const std::function<void(Worker& worker, std::function<void()> done)>& each);
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

  std::mutex mutex_;  // guards what follows
  std::condition_variable came_;
  std::vector<PackedConnection> more_;
};

}  // namespace vpfs::proxy
