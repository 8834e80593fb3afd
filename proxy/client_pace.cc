#include "proxy/client_pace.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/wide.h"

namespace vpfs::proxy {
namespace {

// Looks come at least this often.
constexpr Duration kLongestLook = std::chrono::milliseconds(100);
// What hardly_moves() looks at.
constexpr Duration kWhole = std::chrono::seconds(1);
constexpr int kHardly = 64;
constexpr Duration kMinute = std::chrono::minutes(1);
// How often full budgets are dropped.
constexpr Duration kLookThrough = std::chrono::seconds(1);

// How long `bytes` may take.
Duration time_for(std::uint64_t bytes, BytesPerSecond rate) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 33;  // so that nothing overflows
  return Duration(std::min(bytes, kMostBytes) * kNanosecondsPerSecond /
                  std::max<std::uint64_t>(rate.count, 1));
}

// Looks cannot measure shorter times.
Duration most(Duration client_stall) {
  return std::max<Duration>(client_stall / 3, kLongestLook);
}

}  // namespace

Duration ClientPace::look(TimePoint now, bool server_waits, std::uint64_t total,
                          BytesPerSecond least) {
  const TimePoint before = std::exchange(looked_, now);
  const Duration passed =
      before == TimePoint{} ? Duration::zero() : std::min(now - before, kLongestLook);
  const std::uint64_t moved = total - std::min(std::exchange(total_, total), total);
  moving_ = moved > 0;
  lag_ = server_waits ? std::max(lag_ + passed - time_for(moved, least), Duration::zero())
                      : Duration::zero();
  const bool lags = lag_ > Duration::zero();
  lagging_for_ = lags ? lagging_for_ + passed : Duration::zero();
  moved_meanwhile_ = lags ? moved_meanwhile_ + moved : 0;
  if (!lags || lagging_for_ >= kWhole) {
    hardly_moves_ = lags && time_for(moved_meanwhile_, least) < lagging_for_ / kHardly;
    lagging_for_ = Duration::zero();
    moved_meanwhile_ = 0;
  }
  return lag_;
}

bool StallBudgets::is_good(const Budget& budget, Duration client_stall) {
  return budget.left >= most(client_stall) / 10;
}

void StallBudgets::fill(Budget& budget, TimePoint now, Duration client_stall) {
  const Duration passed = std::min<Duration>(now - budget.filled, kMinute);
  if (passed <= Duration::zero()) return;
  const auto more =
      SignedWide{passed.count()} * most(client_stall).count() / Duration(kMinute).count();
  budget.left =
      std::min(budget.left + Duration(static_cast<std::int64_t>(more)), most(client_stall));
  budget.filled = now;
  if (is_good(budget, client_stall)) budget.closed = 0;
}

bool StallBudgets::take(stage::VirtualPfsId whose, const asio::ip::address& address,
                        TimePoint begin, TimePoint end, Duration client_stall) {
  const std::lock_guard lock(mutex_);
  if (end - looked_through_ >= kLookThrough) forget_full_ones(end, client_stall);
  const auto [at, is_new] = budgets_.try_emplace(Key(whose, address));
  Budget& budget = at->second;
  if (is_new) budget = {.left = most(client_stall), .filled = begin, .taken_until = begin};
  known_.store(budgets_.size(), std::memory_order_relaxed);
  fill(budget, end, client_stall);
  const Duration taken = end - std::max(begin, budget.taken_until);
  if (taken > Duration::zero()) {
    // The debt is bounded: some stalls cannot be prevented.
    budget.left = std::max(budget.left - taken, -most(client_stall) * 3 / 2);
    budget.taken_until = end;
  }
  return budget.left > Duration::zero();
}

StallBudgets::Standing StallBudgets::standing(stage::VirtualPfsId whose,
                                              const asio::ip::address& address, TimePoint now,
                                              Duration client_stall) {
  if (nobody_stalled()) return Standing::good;
  const std::lock_guard lock(mutex_);
  if (now - looked_through_ >= kLookThrough) forget_full_ones(now, client_stall);
  const auto found = budgets_.find(Key(whose, address));
  if (found == budgets_.end()) return Standing::good;
  Budget& budget = found->second;
  fill(budget, now, client_stall);
  const Duration all = most(client_stall);
  if (budget.left <= -all) budget.slow = true;
  if (budget.left >= -all / 2) budget.slow = false;
  if (budget.slow) return Standing::slow;
  return is_good(budget, client_stall) ? Standing::good : Standing::stalled;
}

void StallBudgets::closed(stage::VirtualPfsId whose, const asio::ip::address& address,
                          TimePoint now) {
  const std::lock_guard lock(mutex_);
  const auto found = budgets_.find(Key(whose, address));
  if (found != budgets_.end() && found->second.closed++ == 0) found->second.first_closed = now;
}

bool StallBudgets::replaces_closed(stage::VirtualPfsId whose, const asio::ip::address& address,
                                   TimePoint begun) {
  const std::lock_guard lock(mutex_);
  const auto found = budgets_.find(Key(whose, address));
  if (found == budgets_.end()) return false;
  Budget& budget = found->second;
  if (budget.closed == 0 || begun < budget.first_closed) return false;
  --budget.closed;
  return true;
}

bool StallBudgets::take_turn(stage::VirtualPfsId whose, const asio::ip::address& address,
                             const ClientTurns::Ticket& ticket, TimePoint now,
                             Duration client_stall) {
  const std::lock_guard lock(mutex_);
  const auto found = budgets_.find(Key(whose, address));
  return found == budgets_.end() || found->second.turns.take(ticket, now, client_stall);
}

void StallBudgets::end_turn(stage::VirtualPfsId whose, const asio::ip::address& address,
                            const ClientTurns::Ticket& ticket, TimePoint now,
                            Duration client_stall) {
  const std::lock_guard lock(mutex_);
  const auto found = budgets_.find(Key(whose, address));
  if (found != budgets_.end()) found->second.turns.end(ticket, now, client_stall);
}

void StallBudgets::withdraw_turn(stage::VirtualPfsId whose, const asio::ip::address& address,
                                 const ClientTurns::Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = budgets_.find(Key(whose, address));
  if (found != budgets_.end()) found->second.turns.withdraw(ticket);
}

void StallBudgets::owe(stage::VirtualPfsId whose, const asio::ip::address& address, Duration more) {
  const std::lock_guard lock(mutex_);
  const auto found = budgets_.find(Key(whose, address));
  if (found != budgets_.end()) found->second.turns.owe(more);
}

void StallBudgets::forget_full_ones(TimePoint now, Duration client_stall) {
  looked_through_ = now;
  for (auto each = budgets_.begin(); each != budgets_.end();) {
    fill(each->second, now, client_stall);
    each->second.turns.expire(now, client_stall);
    const bool is_full = each->second.left >= most(client_stall) && each->second.turns.idle();
    each = is_full ? budgets_.erase(each) : std::next(each);
  }
  known_.store(budgets_.size(), std::memory_order_relaxed);
}

}  // namespace vpfs::proxy
