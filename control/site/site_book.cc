#include "control/site/site_book.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/system_clock.h"
#include "base/units.h"
#include "control/wire/protocol.h"
#include "stage/book/record.h"

namespace vpfs::coordinator {
namespace {

using control::make_error;
using control::SiteStore;
using Why = control::SiteStore::Why;
using PbError = control::Error;

PbError not_known(const std::string& why) {
  return make_error(PbError::UNAVAILABLE, "store",
                    fmt::format("{}: it is not known whether the change was made; rule history or "
                                "job list says so once the store answers",
                                why));
}

PbError not_leading() {
  return make_error(PbError::UNAVAILABLE, "leader",
                    "this coordinator leads no more; nothing was changed");
}

}  // namespace

SiteBook::SiteBook(asio::io_context& context, const Clock& clock, control::StoreCaller& store,
                   control::LiveState& live, control::RuleAdministration& rules, bool is_behind,
                   std::function<void()> lost, const Limits& limits)
    : clock_(clock),
      store_(store),
      live_(live),
      rules_(rules),
      lost_(std::move(lost)),
      limits_(limits),
      is_behind_(is_behind),
      retry_(context),
      alarm_(context) {}

PbError SiteBook::not_made(const std::string& why) {
  return make_error(PbError::UNAVAILABLE, "store", why + "; nothing was changed");
}

void SiteBook::change(control::Envelope request, const control::Caller& caller,
                      control::ReadRequest read, Done done) {
  if (is_stopped_ || is_lost_) return done(std::unexpected(not_leading()));
  if (waiting_.size() >= limits_.most_waiting) {
    return done(std::unexpected(not_made("the store does not answer, and too many changes wait")));
  }
  // Others before it may change what it was read against.
  if (is_busy_ || !waiting_.empty()) read = {};
  waiting_.push_back({.request = std::move(request),
                      .caller = caller,
                      .read = std::move(read),
                      .done = std::move(done),
                      .until = clock_.now() + limits_.patience});
  next();
  set_alarm();
}

void SiteBook::next() {
  while (!is_busy_ && !is_stopped_ && !is_lost_) {
    if (is_behind_ || is_long_) return keep_whole();
    if (const auto due = live_.due(wall_clock_now())) {
      end_due(*due);
    } else if (!waiting_.empty()) {
      Waiting first = std::move(waiting_.front());
      waiting_.pop_front();
      begin(std::move(first));
    } else {
      return;
    }
  }
}

void SiteBook::begin(Waiting waiting) {
  auto change = rules_.prepare(waiting.request, waiting.caller, waiting.read);
  if (!change) return waiting.done(std::unexpected(std::move(change.error())));
  current_ = std::move(waiting);
  std::string record = change->record;
  keep(std::move(record), [this, change = std::move(*change)](const Kept& kept) {
    if (kept) return carry_out(change, *kept);
    Waiting refused = std::move(*std::exchange(current_, std::nullopt));
    if (!refused.done) return;
    if (kept.error().why == Why::lost) {
      return refused.done(std::unexpected(not_known("another coordinator leads")));
    }
    // The store may take the whole book: its file may have been moved, for instance.
    if (std::exchange(refused.was_asked_again, true)) {
      return refused.done(std::unexpected(not_made(kept.error().text)));
    }
    refused.read = {};
    waiting_.push_front(std::move(refused));
    is_behind_ = true;
  });
}

void SiteBook::carry_out(const stage::Change& change, bool wants_replacing) {
  const Waiting done = std::move(*std::exchange(current_, std::nullopt));
  control::Envelope reply = rules_.commit(done.request, change, done.read);
  is_long_ = wants_replacing;
  if (done.done) return done.done(std::move(reply));
  spdlog::info("{}: the change is made whose outcome was not known", done.caller.name);
}

void SiteBook::end_due(const stage::BookOperation& due) {
  const auto record = stage::to_record(due, live_.book().state().number + 1);
  rules_.commit(due);
  keep(record.value(), [this](const Kept& kept) {
    is_behind_ = !kept;
    is_long_ = kept && *kept;
  });
}

void SiteBook::keep(std::string record, std::function<void(Kept)> kept) {
  is_busy_ = true;
  store_.ask(
      [record](SiteStore& store) -> Kept {
        const auto appended = store.append(record);
        if (!appended) return std::unexpected(appended.error());
        return store.wants_replacing();
      },
      [this, record, kept = std::move(kept)](const Kept& outcome) {
        if (!outcome && outcome.error().why == Why::unreachable) {
          failed(outcome.error());
          retry_.expires_after(limits_.pause);
          return retry_.async_wait([this, record, kept](std::error_code error) {
            if (!error && !is_stopped_) keep(record, kept);
          });
        }
        if (!outcome) failed(outcome.error());
        if (outcome && std::exchange(is_troubled_, false)) spdlog::info("store: it answers again");
        is_busy_ = false;
        kept(outcome);
        next();
      });
}

void SiteBook::keep_whole() {
  is_busy_ = true;
  store_.ask([book = live_.book().snapshot()](SiteStore& store) { return store.replace(book); },
             [this](const SiteStore::Outcome<void>& outcome) {
               is_busy_ = false;
               // All of its records are there, whatever became of this.
               const bool was_needed = std::exchange(is_behind_, !outcome && is_behind_);
               is_long_ = false;
               if (outcome) return next();
               failed(outcome.error());
               if (!was_needed) return next();
               refuse_waiting(outcome.error());
               retry_.expires_after(limits_.pause);
               retry_.async_wait([this](std::error_code error) {
                 if (!error) next();
               });
             });
}

// What waits could not be kept either. If the store does not answer, it may yet.
void SiteBook::refuse_waiting(const SiteStore::Failure& why) {
  if (why.why == Why::unreachable) return;
  for (const Waiting& each : std::exchange(waiting_, {})) {
    each.done(std::unexpected(not_made(why.text)));
  }
}

void SiteBook::failed(const SiteStore::Failure& failure) {
  if (failure.why == Why::lost) {
    if (!std::exchange(is_lost_, true)) lost_();
    return;
  }
  if (std::exchange(is_troubled_, true)) return;
  spdlog::error("store: {}; it is asked again", failure.text);
}

void SiteBook::set_alarm() {
  if (is_stopped_) return;
  std::optional<TimePoint> first;
  if (current_ && current_->done) first = current_->until;
  if (!waiting_.empty()) first = std::min(first.value_or(TimePoint::max()), waiting_.front().until);
  if (!first) return;
  alarm_.expires_at(*first);
  alarm_.async_wait([this](std::error_code error) {
    if (error || is_stopped_) return;
    answer_late();
    set_alarm();
  });
}

void SiteBook::answer_late() {
  const TimePoint now = clock_.now();
  std::vector<std::pair<Done, PbError>> late;
  const std::string why =
      fmt::format("the store has not answered for {}", to_string(limits_.patience));
  if (current_ && current_->done && current_->until <= now) {
    late.emplace_back(std::exchange(current_->done, nullptr), not_known(why));
  }
  while (!waiting_.empty() && waiting_.front().until <= now) {
    late.emplace_back(std::move(waiting_.front().done), not_made(why));
    waiting_.pop_front();
  }
  for (auto& [done, error] : late) done(std::unexpected(std::move(error)));
}

void SiteBook::stop() {
  if (std::exchange(is_stopped_, true)) return;
  retry_.cancel();
  alarm_.cancel();
  if (current_ && current_->done) {
    current_->done(std::unexpected(not_known("this coordinator leads no more")));
  }
  current_.reset();
  for (const Waiting& each : std::exchange(waiting_, {})) each.done(std::unexpected(not_leading()));
}

}  // namespace vpfs::coordinator
