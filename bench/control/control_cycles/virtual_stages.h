#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/control/control_cycles/sockets.h"
#include "bench/control/control_cycles/stage_link.h"
#include "bench/control/control_cycles/stage_messages.h"
#include "control/wire/framing.h"
#include "control/wire/port_address.h"

namespace vpfs::bench {

struct StagesPlan {
  std::vector<control::PortAddress>
      addresses;  // each is dialled by an equal part, one after another
  std::size_t stages = 50;
  std::size_t per_job = 50;
  std::size_t first_index = 0;  // of the first stage
  std::size_t connect_parallel = 64;
};

// Messages of one kind: frames with their lengths, before TLS.
struct Tally {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  void add(std::size_t size) {
    ++messages;
    bytes += size;
  }
};

struct StagesCounts {
  Tally asks;      // cycles that only ask for a report
  Tally enforces;  // other cycles
  Tally reports;   // answers with counters
  Tally acks;      // answers without
  Tally others_received;
  Tally others_sent;
  std::uint64_t refused = 0;  // requests that virtual stages do not know
  std::uint64_t allocations = 0;
  std::uint64_t repeated = 0;  // allocations that were the same as the one before
};

// Stages that dial a coordinator and answer its cycles, all on one thread.
class VirtualStages {
 public:
  // `signals` becomes readable when a signal has come.
  VirtualStages(const StagesPlan& plan, const TlsClient* tls, const Clock& clock,
                const net::Descriptor& signals);

  // All signals that came before have to be read.
  void serve_until_signal();

  [[nodiscard]] const StagesCounts& counts() const { return counts_; }
  // From the first dialling until the last stage was greeted; nothing: not all are.
  [[nodiscard]] std::optional<Duration> admitted() const { return admitted_; }
  [[nodiscard]] std::size_t closed() const { return closed_; }

  // Called once when all have answered a cycle.
  using Ready = void (*)(const VirtualStages& stages);
  void on_ready(Ready ready) { ready_ = ready; }

 private:
  struct Stage {
    StageLink link;
    VirtualFlow flow;
    bool secured = false;
    bool greeted = false;
    std::unique_ptr<control::FrameReader> reader;  // while a part of a frame has arrived
    std::uint64_t caps = 0;                        // a digest of the last allocation
  };

  void dial_some();
  void secure(Stage& stage);
  void serve(Stage& stage);
  // Whether there may be more.
  [[nodiscard]] bool read_some(Stage& stage);
  void handle(Stage& stage, std::span<const std::byte> frame);
  void greet(Stage& stage);
  void answer_cycle(Stage& stage, const control::Envelope& request, std::size_t size);
  void end(Stage& stage);
  void send(Stage& stage);

  const StagesPlan plan_;
  const TlsClient* const tls_;
  const Clock& clock_;
  StageMessages messages_;
  Poll poll_;
  std::vector<Stage> stages_;
  std::size_t dialled_ = 0;
  std::size_t greeted_ = 0;
  std::size_t cycled_ = 0;
  std::size_t closed_ = 0;
  TimePoint began_at_;
  std::optional<Duration> admitted_;
  Ready ready_ = nullptr;
  StagesCounts counts_;
  // Used by one stage after the other.
  std::unique_ptr<control::FrameReader> reader_;
  control::MessageMemory memory_;
  std::string out_;
};

}  // namespace vpfs::bench
