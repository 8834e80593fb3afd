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
  // Stages of members: one that is sent away, or loses its connection, dials another address, that
  // of the member that was named if there is one.
  bool roams = false;
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
  // Called when all have answered a cycle of the latest term.
  using Led = void (*)(const VirtualStages& stages);
  void on_led(Led led) { led_ = led; }
  [[nodiscard]] std::uint64_t latest_term() const { return latest_term_; }

 private:
  struct Stage {
    StageLink link;
    VirtualFlow flow;
    bool secured = false;
    bool greeted = false;
    std::unique_ptr<control::FrameReader> reader;  // while a part of a frame has arrived
    std::uint64_t caps = 0;                        // a digest of the last allocation
    std::uint64_t term = 0;                        // of the last cycle
    std::size_t address = 0;                       // that it has dialled
  };

  void dial_some();
  void dial_again();
  void send_away(Stage& stage, const control::Error& error);
  void note_term(Stage& stage, std::uint64_t term);
  void secure(Stage& stage);
  void serve(Stage& stage, bool has_hung_up);
  // Whether there may be more.
  [[nodiscard]] bool read_some(Stage& stage, bool has_hung_up);
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
  Led led_ = nullptr;
  std::vector<std::size_t> away_;  // stages that dial again
  std::uint64_t latest_term_ = 0;
  std::size_t with_latest_term_ = 0;
  StagesCounts counts_;
  // Used by one stage after the other.
  std::unique_ptr<control::FrameReader> reader_;
  control::MessageMemory memory_;
  std::string out_;
};

}  // namespace vpfs::bench
