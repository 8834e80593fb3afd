#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <utility>

#include "control/admin/history_keeper.h"
#include "control/admin/past_reply.h"
#include "control/insight/past.h"
#include "control/wire/control.pb.h"

namespace vpfs::control {

// Keeps the history of a stage and answers questions about it. Belongs to one thread.
class PastQuestions {
 public:
  explicit PastQuestions(HistoryKeeper::Kept kept) : keeper_(std::move(kept)) {}

  // See HistoryKeeper, as for finish().
  void tick(StageGate& gate, TimePoint now, WallTime wall, std::uint64_t rules,
            const stage::Config& config) {
    keeper_.tick(gate, now, wall, rules, config);
  }

  void finish() { keeper_.finish(); }
  [[nodiscard]] const stage::History& history() const { return keeper_.history(); }

  // What was done in the time that is asked about. An error is about the request.
  [[nodiscard]] std::expected<insight::Past, Error> read(const Past& request, WallTime now) const;
  [[nodiscard]] std::expected<SeriesReply, Error> series(const Series& request, WallTime now) const;
  // As read(), for a caller that sees own jobs only. Any user may be one, so all of them together
  // have kForOwn answers in a second.
  [[nodiscard]] std::expected<insight::Past, Error> read_for_own(const Past& request, WallTime now);
  // Counts one of them. An error: there were too many.
  [[nodiscard]] std::expected<void, Error> count_for_own(WallTime now);
  [[nodiscard]] PastReply reply(const insight::Past& past, const PastChoice& choice) const;

  // How often a virtual PFS was further from its share than the scheduler promises.
  [[nodiscard]] std::uint64_t lag_faults() const { return keeper_.lag_faults(); }
  // Says of the virtual PFSes of an answer what they were entitled to in the last second.
  void add_entitlements(StatsReply& reply) const;

  // The entries of the ledger whose time has a part in the time that is asked about.
  using MayBeSeen = std::function<bool(const insight::Spell&)>;
  [[nodiscard]] std::expected<LedgerReply, Error> ledger(const Ledger& request, WallTime now,
                                                         const MayBeSeen& may_be_seen) const;

  static constexpr int kForOwn = 20;

 private:
  HistoryKeeper keeper_;
  WallTime second_ = {};  // of the answers for own jobs
  int answers_ = 0;
};

}  // namespace vpfs::control
