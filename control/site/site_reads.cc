#include "control/site/site_reads.h"

#include <system_error>
#include <utility>

namespace vpfs::coordinator {

using control::SiteStore;

SiteReads::SiteReads(asio::io_context& context, const Clock& clock, control::StoreCaller& store,
                     std::function<void()> lost, const Limits& limits)
    : clock_(clock),
      store_(store),
      lost_(std::move(lost)),
      limits_(limits),
      alarm_(context),
      pause_(context) {}

void SiteReads::ask(Done done) {
  if (is_stopped_) return done(Standing::lost);
  if (!store_.traits().has_standbys) return done(Standing::leads);
  if (is_late_) return done(Standing::unknown);
  waiting_.push_back(std::move(done));
  if (waiting_.size() == 1) next();
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
  store_.ask([](SiteStore& store) { return store.confirm(); },
             [this](const SiteStore::Outcome<void>& outcome) { answered(outcome); });
  alarm_.expires_after(limits_.patience);
  alarm_.async_wait([this, question = ++question_](std::error_code error) {
    if (error || is_stopped_ || !is_asking_ || question != question_) return;
    is_late_ = true;
    tell(asked_, Standing::unknown);
    tell(waiting_, Standing::unknown);
  });
}

void SiteReads::answered(const SiteStore::Outcome<void>& outcome) {
  is_asking_ = is_late_ = false;
  alarm_.cancel();
  if (outcome) {
    tell(asked_, Standing::leads);
  } else if (outcome.error().why == SiteStore::Why::lost) {
    lost_();
    tell(asked_, Standing::lost);
  } else {
    tell(asked_, Standing::unknown);
  }
  next();
}

void SiteReads::tell(std::vector<Done>& to, Standing standing) {
  for (const Done& each : std::exchange(to, {})) each(standing);
}

void SiteReads::stop() {
  if (std::exchange(is_stopped_, true)) return;
  alarm_.cancel();
  pause_.cancel();
  tell(asked_, Standing::lost);
  tell(waiting_, Standing::lost);
}

}  // namespace vpfs::coordinator
