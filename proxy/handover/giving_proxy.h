#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "control/handover/giver.h"
#include "control/handover/successor.h"
#include "control/host/host.h"
#include "net/listener.h"
#include "proxy/dispatcher.h"
#include "proxy/shared_state.h"
#include "proxy/worker.h"

namespace vpfs::proxy {

// What a proxy hands over: its listener, its connections, and what it knows. Belongs to the main
// thread, but what GivingProgram has.
class GivingProxy final : private control::GivingProgram {
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
  explicit GivingProxy(Parts parts)
      : parts_(parts),
        successor_({.context = parts.host.context(),
                    .program = *this,
                    .clock = parts.clock,
                    .role = kProgramName.role,
                    .end = [&host = parts.host] { host.stop(); }}) {}
  ~GivingProxy() { stop(); }
  GivingProxy(const GivingProxy&) = delete;
  GivingProxy& operator=(const GivingProxy&) = delete;

  [[nodiscard]] control::Successor& successor() { return successor_; }
  // The host has ended. Returns when the thread of the hand-over has.
  void stop();

 private:
  // From the thread of the hand-over.
  [[nodiscard]] control::Belongings offer() override;
  void withdraw() override;
  void freeze() override;
  [[nodiscard]] std::size_t outstanding() override;
  [[nodiscard]] Result<std::vector<control::PackedParcel>> pack() override;
  [[nodiscard]] Result<SavedState> state(TimePoint end) override;
  void thaw() override;
  [[nodiscard]] std::string why_not() override;
  void leave(const control::HandedOver& done) override;
  [[nodiscard]] std::vector<control::PackedParcel> wait_for_more(Duration patience) override;
  [[nodiscard]] std::optional<SavedState> changes() override;
  [[nodiscard]] std::size_t left() override;
  [[nodiscard]] std::string_view kind_of_parts() const override { return "connections"; }

  // Calls each(worker, done) and waits until each has called `done`, or the program ends.
  void on_workers(const std::function<void(Worker& worker, std::function<void()> done)>& each);

  Parts parts_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable came_;
  std::vector<control::PackedParcel> more_;
  control::Successor successor_;  // ends first
};

}  // namespace vpfs::proxy
