#include "control/site/site_reads.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

namespace vpfs::coordinator {

using control::SiteStore;

SiteReads::SiteReads(asio::io_context& context, const Clock& clock, Confirm confirm,
                     const Limits& limits)
    : clock_(clock),
      confirm_(std::move(confirm)),
      limits_(limits),
      alarm_(context),
      pause_(context) {}

void SiteReads::ask(Done done) {
  if (is_stopped_) return done(Standing::lost);
  if (!confirm_) return done(Standing::leads);
  waiting_.push_back({.done = std::move(done), .until = clock_.now() + limits_.patience});
  if (waiting_.size() > 1) return;  // the next confirmation is on its way
  next();
  set_alarm();
}

void SiteReads::next() {
  if (is_asking_ || is_stopped_ || waiting_.empty()) return;
  if (clock_.now() >= next_at_) return begin();
  pause_.expires_at(next_at_);
  pause_.async_wait([this](std::error_code error) {
    if (!error) next();
  });
}

void SiteReads::begin() {
  is_asking_ = true;
  next_at_ = clock_.now() + limits_.pause;
  asked_ = std::exchange(waiting_, {});
  confirm_([this](const SiteStore::Outcome<void>& outcome) { answered(outcome); });
}

void SiteReads::answered(const SiteStore::Outcome<void>& outcome) {
  is_asking_ = false;
  if (outcome) {
    tell(asked_, Standing::leads);
  } else if (outcome.error().why == SiteStore::Why::lost) {
    tell(asked_, Standing::lost);
  } else {
    waiting_.insert(waiting_.begin(), std::make_move_iterator(asked_.begin()),
                    std::make_move_iterator(asked_.end()));
    asked_.clear();
  }
  next();
}

void SiteReads::set_alarm() {
  if (is_stopped_ || (asked_.empty() && waiting_.empty())) return;
  TimePoint first = kNever;
  for (const Readers* const each : {&asked_, &waiting_}) {
    if (!each->empty()) first = std::min(first, each->front().until);
  }
  alarm_.expires_at(first);
  alarm_.async_wait([this](std::error_code error) {
    if (error || is_stopped_) return;
    const TimePoint now = clock_.now();
    tell_late(asked_, now);
    tell_late(waiting_, now);
    set_alarm();
  });
}

void SiteReads::tell(Readers& to, Standing standing) {
  for (const Reader& each : std::exchange(to, {})) each.done(standing);
}

void SiteReads::tell_late(Readers& to, TimePoint now) {
  while (!to.empty() && to.front().until <= now) {
    const Reader late = std::move(to.front());
    to.pop_front();
    late.done(Standing::unknown);
  }
}

void SiteReads::stop() {
  if (std::exchange(is_stopped_, true)) return;
  alarm_.cancel();
  pause_.cancel();
  tell(asked_, Standing::lost);
  tell(waiting_, Standing::lost);
}

}  // namespace vpfs::coordinator
