#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "control/allocation/cycle_state.h"
#include "control/election/candidacy.h"
#include "control/election/tenure.h"
#include "test/control/allocation/coordinated_site.h"
#include "test/control/allocation/model_stage.h"
#include "test/control/allocation/virtual_time.h"
#include "test/control/election/model_store.h"

namespace vpfs::election {

// The rules that keep the sum of caps safe. A test takes each one out and sees that it is needed.
struct SafetyRules {
  bool leader_stops = true;      // when its office was not confirmed for a lease
  bool waits_for_leases = true;  // before it gives caps, for those of the leader before
  bool compares = true;          // the store compares and swaps
  bool resigns_late = true;      // a leader resigns only when caps of all before it have ended
};

struct ContestSettings {
  std::uint64_t seed = 1;
  bool shows_beats = false;
  std::uint32_t coordinators = 3;
  std::uint32_t stages = 4;
  SafetyRules rules;
  Duration faults_end = std::chrono::seconds(30);
  Duration end = std::chrono::seconds(45);
};

// Coordinators that contend for one site, in virtual time: they are killed, stopped for a while,
// cut from the store, from stages and from each other, and told that another one is gone while it
// is not. Stages are what stage/allocations.h makes of them.
class ContestedSite {
 public:
  explicit ContestedSite(const ContestSettings& settings);
  ~ContestedSite();
  ContestedSite(const ContestedSite&) = delete;
  ContestedSite& operator=(const ContestedSite&) = delete;

  // Until the end, or until the caps in force pass the capacity.
  void run();

  struct Outcome {
    std::uint64_t terms = 0;
    std::uint64_t early_claims = 0;  // of an office that was not vacant
    std::uint64_t lost = 0;          // leaders that another one followed while they lived
    std::uint64_t applied = 0;
    std::uint64_t together = 0;  // cycles that began while another one led too
  };
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }
  [[nodiscard]] const allocation::CapSum& caps() const { return caps_; }
  [[nodiscard]] const allocation::Amounts& capacity() const { return cycle_settings_.capacity; }
  // Whether all stages have caps of one leader at the end.
  [[nodiscard]] bool is_led_at_the_end() const;

 private:
  struct Coordinator;
  struct Stream;

  [[nodiscard]] TimePoint now() const { return time_.now(); }
  [[nodiscard]] bool has_faults() const { return now() < TimePoint{} + settings_.faults_end; }
  [[nodiscard]] Duration call_time();

  void start(std::uint32_t number);
  void fault(const std::shared_ptr<Coordinator>& self);
  void end(Coordinator& process, bool well);
  // Runs `what` when the process runs, if it still lives then.
  void later(Coordinator& process, Duration after, std::function<void(Coordinator&)> what);
  // Carries out a call of the store, and then `done` with its outcome; nothing: no answer.
  template <typename Call, typename Done>
  void ask_store(Coordinator& process, Call call, Done done);

  void look(Coordinator& process);
  void consider(Coordinator& process);
  void watch(Coordinator& process);
  void begin(Coordinator& process, const control::SiteStore::Seen& seen, TimePoint asked);
  void confirm(Coordinator& process);
  void lose(Coordinator& process);
  void cycle(Coordinator& process);
  void connect(Coordinator& process, std::uint32_t stage);
  void break_streams(Coordinator& process);
  void break_stream(std::shared_ptr<Stream> stream);
  void deliver(const std::shared_ptr<Stream>& stream);
  void apply(const std::shared_ptr<Stream>& stream, const allocation::SentCycle& cycle);
  void end_lease(allocation::ModelStage& stage);

  ContestSettings settings_;
  control::SiteStore::Traits traits_;
  allocation::CycleSettings cycle_settings_;
  allocation::VirtualTime time_;
  allocation::CapSum caps_;
  ModelStore store_;
  std::vector<std::shared_ptr<Coordinator>> coordinators_;
  std::vector<std::shared_ptr<allocation::ModelStage>> stages_;
  std::vector<std::uint64_t> term_of_stage_;
  std::uint64_t incarnations_ = 0;
  std::uint64_t highest_term_ = 0;
  Outcome outcome_;
};

}  // namespace vpfs::election
