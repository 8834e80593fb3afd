#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/allocation/cycle_state.h"
#include "control/coordinator/links/stage_links.h"

namespace vpfs::coordinator {

// Tells a CycleState of a flow that a stage announces. Returns whether the flow counts.
bool announce(allocation::CycleState& state, allocation::StageId stage, const control::Flow& flow);

// One round of messages with all stages: sends what CycleState says, and gives it what comes back.
// It waits for no stage beyond the deadline. Belongs to one thread.
class CycleRunner {
 public:
  enum class Kind : std::uint8_t {
    ask,      // all are asked for reports
    enforce,  // divides, and sends what follows; the answers have no counters
    fused,    // the same; the answers are the next reports
  };
  // What a round took: until its last answer, or its deadline.
  struct Times {
    std::size_t stages = 0;  // that were sent something
    std::size_t late = 0;    // that had not answered at the deadline
    Duration compute = {};   // to divide
    Duration total = {};     // from the beginning, computing included
  };
  using Done = std::function<void(const Times& times)>;

  // All outlive it.
  CycleRunner(asio::io_context& context, const Clock& clock, allocation::CycleState& state)
      : context_(context), clock_(clock), state_(state), timer_(context) {}
  // Comes before all else; it outlives the runner's use.
  void use(StageLinks& links) { links_ = &links; }

  // From now on a round begins, and goes on, only if this is true. Otherwise nothing is sent, and
  // nothing is done.
  void ask_before(std::function<bool()> may_send) { may_send_ = std::move(may_send); }
  // `done` is called once, in a later turn. REQUIRES: the round before is done.
  void run(Kind kind, Done done);
  [[nodiscard]] bool is_running() const { return done_ != nullptr; }
  // No round is done any more.
  void stop();

  // What stages say.
  void reported(allocation::StageId stage, const control::Report& report);
  void refused(allocation::StageId stage, std::uint64_t sequence, const control::Error& why);
  // A stage has left. It is not waited for any more.
  void left() { look_whether_done(); }

 private:
  void send(const allocation::Outgoing& message, std::uint64_t joins);
  // Why what is left of a round must not be sent: the process was stopped meanwhile. Null: it may.
  [[nodiscard]] const char* why_not_go_on() const;
  void give_up(std::span<const allocation::Outgoing> rest, std::uint64_t joins, const char* why);
  void wait();
  void look_whether_done();
  void finish(std::size_t late);

  asio::io_context& context_;
  const Clock& clock_;
  allocation::CycleState& state_;
  StageLinks* links_ = nullptr;
  asio::steady_timer timer_;
  control::Envelope envelope_;  // its memory is used again
  std::vector<allocation::FlowCounters> counters_;
  std::function<bool()> may_send_;
  Done done_;
  bool is_finished_ = true;  // done_ is under way
  std::uint64_t round_ = 0;
  TimePoint began_;
  Times times_;
};

}  // namespace vpfs::coordinator
