#include "proxy/client_stall_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace vpfs::proxy {
namespace {
constexpr Duration kTellAgain = std::chrono::minutes(1);
}  // namespace

ClientStallWatch::Verdict ClientStallWatch::look(const State& state, const Limits& limits,
                                                 TimePoint now) {
  const Duration lag =
      std::max(sending_.look(now, state.owes_data, state.sent, limits.least_rate),
               taking_.look(now, state.takes_nothing, state.taken, limits.least_rate));
  Verdict verdict = Verdict::moves;
  if (stalled_) {
    verdict = Verdict::stalls;
    const bool owes_nothing = !state.owes_data && !state.owes_late_data;
    if (!state.takes_nothing && (sending_.moving() || owes_nothing)) stalled_ = false;
  } else if (lag <= StallBudgets::grace(limits.client_stall)) {
    charged_ = Duration::zero();
  } else if (!has_time_left(state, lag, limits.client_stall, now)) {
    verdict = Verdict::begins_to_stall;
    stalled_ = true;
    on_probation_ = true;
    charged_ = Duration::zero();
    if (!state.waiting.empty()) whose_ = state.waiting.front()->virtual_pfs();
  }
  if (on_probation_ && standing(whose_, limits.client_stall, now) == StallBudgets::Standing::good) {
    on_probation_ = false;
  }
  return verdict;
}

// Charges the growth of the lag to the budgets of the applications that wait.
bool ClientStallWatch::has_time_left(const State& state, Duration lag, Duration client_stall,
                                     TimePoint now) {
  if (state.waiting.empty()) return !state.has_held || lag < client_stall;
  const TimePoint begin = now - (lag - std::min(lag, std::exchange(charged_, lag)));
  std::vector<stage::VirtualPfsId> whose;
  for (const PendingIo* io : state.waiting) whose.push_back(io->virtual_pfs());
  std::ranges::sort(whose);
  whose.erase(std::ranges::unique(whose).begin(), whose.end());
  bool left = true;
  for (const stage::VirtualPfsId each : whose) {
    left &= budgets_.take(each, client_, begin, now, client_stall);
  }
  return left;
}

bool ClientStallWatch::is_news(TimePoint now) {
  if (now - told_ < kTellAgain) return false;
  told_ = now;
  return true;
}

}  // namespace vpfs::proxy
