#include "proxy/client_stall_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace vpfs::proxy {
namespace {
using Standing = StallBudgets::Standing;

constexpr Duration kTellAgain = std::chrono::minutes(1);

ClientTurns::Ticket ticket_of(const PendingIo& io) {
  return {.arrival = io.arrival, .worker = io.worker, .number = io.number};
}
}  // namespace

ClientStallWatch::Verdict ClientStallWatch::look(const State& state, const Limits& limits,
                                                 TimePoint now) {
  const Duration lag =
      std::max(sending_.look(now, state.owes_data, state.sent, limits.least_rate),
               taking_.look(now, state.takes_nothing, state.taken, limits.least_rate));
  const Duration growth = std::max(lag - std::exchange(lag_, lag), Duration::zero());
  if (lag == Duration::zero()) unpaid_ = Duration::zero();
  if (state.others_wait) unpaid_ += growth;
  Verdict verdict = Verdict::moves;
  if (stalled_) {
    verdict = Verdict::stalls;
    const bool owes_nothing = !state.owes_data && !state.owes_late_data;
    if (!state.takes_nothing && (sending_.moving() || owes_nothing)) stalled_ = false;
  } else if (lag > StallBudgets::grace(limits.client_stall) &&
             !has_time_left(state, lag, limits.client_stall, now)) {
    verdict = Verdict::begins_to_stall;
    stalled_ = true;
    on_probation_ = true;
    if (!state.waiting.empty()) whose_ = state.waiting.front()->virtual_pfs();
  }
  if (on_probation_ && standing(whose_, limits.client_stall, now) == Standing::good) {
    on_probation_ = replaces_closed_ = false;
  }
  return verdict;
}

StallBudgets::Standing ClientStallWatch::meet(stage::VirtualPfsId whose, Duration client_stall,
                                              TimePoint now) {
  const Standing found = standing(whose, client_stall, now);
  if (found != Standing::good && !on_probation_ &&
      budgets_.replaces_closed(whose, client_, begun_)) {
    on_probation_ = replaces_closed_ = true;
    whose_ = whose;
  }
  return replaces_closed_ && whose == whose_ ? Standing::slow : found;
}

// Charges what is unpaid to the budgets of the applications whose requests wait for the client.
bool ClientStallWatch::has_time_left(const State& state, Duration lag, Duration client_stall,
                                     TimePoint now) {
  const Duration unpaid = std::exchange(unpaid_, Duration::zero());
  if (state.waiting.empty() && state.late.empty()) return !state.has_held || lag < client_stall;
  if (unpaid <= Duration::zero()) return true;
  const TimePoint begin = now - unpaid;
  std::vector<stage::VirtualPfsId> whose;
  for (const PendingIo* io : state.waiting) whose.push_back(io->virtual_pfs());
  for (const PendingIo* io : state.late) {
    whose.push_back(io->virtual_pfs());
    budgets_.owe(io->virtual_pfs(), client_, unpaid);
  }
  std::ranges::sort(whose);
  whose.erase(std::ranges::unique(whose).begin(), whose.end());
  bool left = true;
  for (const stage::VirtualPfsId each : whose) {
    left &= budgets_.take(each, client_, begin, now, client_stall);
  }
  return left || state.waiting.empty();
}

bool ClientStallWatch::take_turn(PendingIo& io, Duration client_stall, TimePoint now) {
  io.has_turn = budgets_.take_turn(io.virtual_pfs(), client_, ticket_of(io), now, client_stall);
  io.waits_for_turn = !io.has_turn;
  return io.has_turn;
}

void ClientStallWatch::leave_turns(PendingIo& io, Duration client_stall, TimePoint now) {
  if (std::exchange(io.waits_for_turn, false)) {
    budgets_.withdraw_turn(io.virtual_pfs(), client_, ticket_of(io));
  }
  if (std::exchange(io.has_turn, false)) {
    budgets_.end_turn(io.virtual_pfs(), client_, ticket_of(io), now, client_stall);
  }
}

bool ClientStallWatch::is_news(TimePoint now) {
  if (now - told_ < kTellAgain) return false;
  told_ = now;
  return true;
}

}  // namespace vpfs::proxy
