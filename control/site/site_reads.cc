#include "control/site/site_reads.h"

#include <system_error>
#include <utility>

namespace vpfs::coordinator {

using control::SiteStore;

SiteReads::SiteReads(asio::io_context& context, control::StoreCaller& store,
                     std::function<void()> lost, Duration patience)
    : store_(store), lost_(std::move(lost)), patience_(patience), alarm_(context) {}

void SiteReads::ask(Done done) {
  if (is_stopped_) return done(Standing::lost);
  if (!store_.traits().has_standbys) return done(Standing::leads);
  if (is_late_) return done(Standing::unknown);
  waiting_.push_back(std::move(done));
  if (!is_asking_) begin();
}

void SiteReads::begin() {
  is_asking_ = true;
  asked_ = std::exchange(waiting_, {});
  store_.ask([](SiteStore& store) { return store.confirm(); },
             [this](const SiteStore::Outcome<void>& outcome) { answered(outcome); });
  alarm_.expires_after(patience_);
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
  if (!is_stopped_ && !is_asking_ && !waiting_.empty()) begin();
}

void SiteReads::tell(std::vector<Done>& to, Standing standing) {
  for (const Done& each : std::exchange(to, {})) each(standing);
}

void SiteReads::stop() {
  if (std::exchange(is_stopped_, true)) return;
  alarm_.cancel();
  tell(asked_, Standing::lost);
  tell(waiting_, Standing::lost);
}

}  // namespace vpfs::coordinator
