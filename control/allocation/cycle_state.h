#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/allocation/allocation_policy.h"
#include "control/allocation/cap_ledger.h"
#include "control/allocation/cycle_types.h"
#include "control/allocation/membership.h"

namespace vpfs::allocation {

// The cycles of a coordinator: it knows stages, the jobs on them, what they have reported and what
// they were sent, and decides what they are sent next. An aggregator uses the same. A pure state
// machine; `now` never goes back.
//
// The sum is safe: caps that stages enforce under a lease never add up to more than the capacity.
// The coordinator cannot see what a stage enforces, only bound it. A cap may be in force
//
// - from when it was sent, for as long as it is not answered and the connection lives: the message
//   may be under way for any time, and its lease counts from when the stage gets it. So it does not
//   expire, and neither does the one before it, since a stage takes on a cycle bit by bit;
// - until its stage has applied a later complete cycle. Stages refuse older ones from then on, also
//   those that are still under way on a former connection. A refused cycle changes nothing. An
//   aggregator that answers `pending` has applied it, but its stages may not have: then the larger
//   one of both counts until an answer that is not pending;
// - until a lease after its answer has come: the stage got it earlier. If leases differ, the
//   longest one that the process was sent counts;
// - until a lease and `transit` after its connection has ended: for that long the stage may still
//   read what was sent. A stage that sleeps longer with an unread cycle would apply it late. So a
//   silent stage is sent one without a lease behind it before it is disconnected.
//
// A stage has at most one cycle that it has not answered; it is sent nothing until it answers. So
// no number of a flow changes its meaning while a message with it is under way, and a hung stage
// does not pile up messages. Another incarnation takes over nothing: the process before it may
// still run, so its caps count beside until they have expired.
//
// Each cap that a coordinator sends is at most the one that may be in force for the pair already,
// plus a part of the free capacity: the capacity less all caps that may be in force. So caps go
// down at once; others go up when the lower ones are answered or have expired. A job that is new
// while nothing is free gets a cap of zero for a cycle.
//
// A coordinator knows nothing of the caps of the one before, which may be the whole capacity. It
// only asks for reports until `clear_from`, if its policy gives caps; meanwhile stages keep the old
// caps until their leases end, and are on their own then. Totals of service elsewhere go out at
// once. Limits that a stage keeps after its lease (Fallback) are not counted.
class CycleState {
 public:
  // `term` is above all before it. REQUIRES: a positive lease, no negative duration.
  CycleState(const CycleSettings& settings, std::unique_ptr<AllocationPolicy> policy,
             std::uint64_t term);

  // Another policy, or the same one with other settings, from the next cycle on. With a smaller
  // capacity the sum is safe when all have answered once.
  void use(std::unique_ptr<AllocationPolicy> policy, const Amounts& capacity);

  // Another capacity from the next cycle on. An aggregator's is the sum of what it was given. As
  // with use(), the sum is safe when settled() is true again.
  void set_capacity(const Amounts& capacity) { settings_.capacity = capacity; }
  // All caps that may be in force fit into the capacity; no cap of an undivided resource may be in
  // force. An aggregator answers its parent `pending` until it is so. Cost: the pairs.
  [[nodiscard]] bool settled() const;
  // Caps that are sent from now on end on all stages by then, since an aggregator's parent counts
  // them no longer; nothing: whenever they do. It never goes back. Half of the time that is left
  // after the transit is the lease of a cycle with caps, and the other half is for a stage to read
  // it. A stage that has not answered then is disconnected. When hardly any time is left, no caps
  // are sent, and the rest goes on with the usual lease. It holds if begin_cycle() is called in
  // each period.
  void set_caps_end(TimePoint end) { caps_end_ = std::max(caps_end_.value_or(end), end); }

  // What the administrator gave a job. Without a weight it has the one that stages announce. `most`
  // is of all stages; zero: no bound.
  void set_job(std::string_view name, std::optional<std::uint32_t> weight, const Amounts& most);
  void remove_job(std::string_view name);

  // A stage has connected. An error if one of that name is connected. Caps of the process before,
  // or of this one on a former connection, still count.
  [[nodiscard]] Result<StageId> join(std::string_view name, std::uint64_t incarnation,
                                     TimePoint now, const Abilities& abilities = {});
  // The connection has ended. REQUIRES (all that take a stage): it is connected.
  void leave(StageId stage, TimePoint now);
  // The stage has announced a flow. A number that had another one, and a job that had another
  // number, change hands. One that cannot be is ignored and counted, and the result is false.
  bool on_flow(StageId stage, const FlowName& flow);
  // The stage has answered. Only an answer to what it was sent last is taken. Cost: the flows of
  // the stage; it allocates nothing unless a flow ends or lies.
  [[nodiscard]] AnswerResult on_report(StageId stage, const StageAnswer& answer,
                                       std::span<const FlowCounters> flows, TimePoint now);
  // The stage does not take that cycle, and says why.
  void on_refusal(StageId stage, std::uint64_t sequence, std::string_view why, TimePoint now);

  // Begins a cycle: divides, and says what to send to which stage. It is valid until the next call
  // of this or ask(). `want_report`: what is sent asks for the next report too; without, call ask()
  // before the next cycle. A stage that has not answered yet is not waited for, and gets nothing.
  [[nodiscard]] std::span<const Outgoing> begin_cycle(TimePoint now, bool want_report = true);
  // Asks all for their reports, and allocates nothing.
  [[nodiscard]] std::span<const Outgoing> ask(TimePoint now);

  // Caps of the present cycle that a stage gets now end in time (set_caps_end()). Otherwise they
  // must not be sent any more.
  [[nodiscard]] bool is_in_time(TimePoint now) const;
  // Stages that have not answered what was sent, silent ones left out.
  [[nodiscard]] std::size_t unanswered() const { return unanswered_; }
  // When those become late; nothing: there are none, or they are late already.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  void on_deadline(TimePoint now);

  // Another term from the next cycle on. REQUIRES: it is above the one before.
  void set_term(std::uint64_t term);
  [[nodiscard]] std::uint64_t term() const { return term_; }
  // The number of the last cycle; zero: there was none.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  [[nodiscard]] const StageStatus& status(StageId stage) const;
  // Calls visit(const StageStatus&) for each known stage, in no order: those that are connected,
  // and those whose caps have not expired.
  template <typename Visitor>
  void for_each_stage(Visitor&& visit) const {
    for (const Membership::Stage& stage : members_.stages()) {
      if (stage.is_known) visit(stage.status);
    }
  }
  // Calls visit(const LiveJob&) for each live job, by number. Cost: the jobs.
  template <typename Visitor>
  void for_each_job(Visitor&& visit) const {
    const std::vector<Membership::Job>& jobs = members_.jobs();
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].pairs > 0) visit(live(i));
    }
  }
  // The job of that number; nothing: it is not live.
  [[nodiscard]] std::optional<LiveJob> live_job(std::uint32_t number) const {
    const std::vector<Membership::Job>& jobs = members_.jobs();
    if (number >= jobs.size() || jobs[number].pairs == 0) return std::nullopt;
    return live(number);
  }
  // The pairs of the last cycle as the policy had them, and what it granted them. It may be more
  // than what they were sent.
  [[nodiscard]] std::span<const Pair> pairs() const { return rows_; }
  [[nodiscard]] std::span<const Grant> grants() const { return grants_; }
  // The stage of a row of them; null: the pair is gone meanwhile.
  [[nodiscard]] const StageStatus* stage_of(std::size_t row) const {
    const Membership::PairRecord& pair = members_.pair(ids_[row]);
    if (pair.job == Membership::kNone) return nullptr;
    return &members_.stages()[pair.stage].status;
  }
  // The names of jobs by Pair::job.
  [[nodiscard]] std::span<const std::string_view> job_names() const { return members_.job_names(); }
  // Why the policy could not divide in the last cycle; "": it could. Then the caps before were sent
  // again.
  [[nodiscard]] const std::string& policy_problem() const { return policy_problem_; }
  // Caps that may be in force, as of the last cycle, before what it sent.
  [[nodiscard]] const Amounts& in_force() const { return in_force_; }

 private:
  using Stage = Membership::Stage;

  [[nodiscard]] LiveJob live(std::uint32_t job) const;
  Stage& connected(StageId stage);
  void lie(Stage& stage, std::string_view what);
  // Frees the number. The pair stays while a cap of it may be in force.
  void unbind(Stage& stage, Membership::Flow& flow);
  void release_ended(Stage& stage);
  void forget_pair_if_clear(std::uint32_t pair);
  void close_open(Stage& stage, const StageAnswer& answer, TimePoint now);
  void take_counters(Stage& stage, std::span<const FlowCounters> flows, TimePoint now);

  void expire(std::uint32_t stage, TimePoint now);
  void rebuild_rows();
  void fill_rows();
  [[nodiscard]] Amounts caps_of_others();
  // Whether a row was granted a cap of the resource.
  [[nodiscard]] bool grants_caps(std::size_t resource);
  // What rows are sent: what they were granted, the caps before, or none.
  enum class Caps : std::uint8_t { granted, before, none };
  void cap_rows(std::size_t resource, Caps source);
  // Whether the stage of a row takes caps of the resource. If it should, its status says so.
  bool takes_caps(std::size_t row, std::size_t resource);
  void miss_caps(std::uint32_t pair, std::string_view what);
  // Nothing: no cap may be sent.
  [[nodiscard]] std::optional<Duration> lease_of_caps(TimePoint now) const;
  // It could not read what it was sent, and enforce it, before all caps end.
  [[nodiscard]] bool is_too_late(const Stage& stage, TimePoint now) const;
  void write_grants();
  void send(std::uint32_t stage, bool allocates, bool want_report);
  void disconnect(std::uint32_t stage);
  void begin_sending(TimePoint now);

  CycleSettings settings_;
  std::unique_ptr<AllocationPolicy> policy_;
  std::uint64_t term_;
  std::uint64_t sequence_ = 0;
  Membership members_;
  std::array<CapLedger, kResources.size()> ledgers_;

  bool rows_are_stale_ = true;
  bool all_take_caps_ = true;  // the stages of all rows, those of metadata operations too
  std::vector<Pair> rows_;
  std::vector<Grant> grants_;                                       // by row, as the following
  std::vector<std::uint32_t> ids_;                                  // of pairs
  std::vector<std::uint32_t> places_;                               // in sent_
  std::array<std::vector<std::uint64_t>, kResources.size()> own_;   // that may be in force
  std::array<std::vector<std::uint64_t>, kResources.size()> caps_;  // to be sent
  std::vector<std::uint64_t> wanted_;                               // raises
  std::vector<std::uint64_t> given_;
  std::vector<FlowGrant> sent_;         // by stage
  std::vector<std::uint8_t> can_send_;  // by place in sent_
  std::vector<Outgoing> outgoing_;

  Amounts in_force_;
  std::string policy_problem_;
  std::size_t unanswered_ = 0;
  std::optional<TimePoint> deadline_;
  std::optional<TimePoint> began_at_;
  std::optional<TimePoint> caps_end_;
  Duration lease_ = {};          // of this cycle
  bool cycle_has_caps_ = false;  // likewise
};

}  // namespace vpfs::allocation
