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
      pause_(limits.pause),
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
                      .until = clock_.now() + limits_.patience,
                      .read_number = live_.book().state().number});
  next();
  set_alarm();
}

void SiteBook::next() {
  while (!is_busy_ && !is_stopped_ && !is_lost_) {
    if (const auto due = live_.due(wall_clock_now())) {
      end_due(*due);
    } else if (is_behind_ || wants_whole_ || is_long_) {
      return keep_whole();
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
  // What was read and prepared counts for the book as it was then.
  if (waiting.read_number != live_.book().state().number) waiting.read = {};
  auto change = rules_.prepare(waiting.request, waiting.caller, waiting.read);
  if (!change) return waiting.done(std::unexpected(std::move(change.error())));
  if (auto why = why_too_long(*change)) return waiting.done(std::unexpected(std::move(*why)));
  current_ = std::move(waiting);
  std::string record = change->record;
  keep(std::move(record), false, [this, change = std::move(*change)](const Kept& kept) {
    if (kept.outcome) return carry_out(change, kept.wants_replacing);
    refused(kept);
  });
}

// Only near the bound, and at the first change, the message is made to know its size.
std::optional<PbError> SiteBook::why_too_long(const stage::Change& change) {
  const SiteGrowth growth = growth_of(change.operation, live_.book().state());
  if (growth.most == 0) return std::nullopt;
  std::size_t after = size_.value_or(limits_.most_bytes) + growth.most;
  if (after <= limits_.most_bytes) return std::nullopt;
  const SiteSize size = size_of(live_);
  size_ = size.all;
  after = size.all + growth.most;
  if (growth.replaces_rules) after -= size.administrators_rules;
  if (after <= limits_.most_bytes) return std::nullopt;
  return make_error(
      PbError::UNAVAILABLE, "",
      fmt::format("the site's rules and jobs would have {} bytes, and stages take {}: "
                  "stop others first; nothing was changed",
                  after, limits_.most_bytes));
}

void SiteBook::refused(const Kept& kept) {
  Waiting asked = std::move(*std::exchange(current_, std::nullopt));
  const SiteStore::Failure& why = kept.outcome.error();
  // The store may have the record of an earlier try. The whole book, without it, settles that.
  const bool is_uncertain = kept.is_uncertain || !asked.done;
  if (is_uncertain) is_behind_ = true;
  if (!asked.done) return;
  if (why.why == Why::lost) {
    return asked.done(std::unexpected(not_known("another coordinator leads")));
  }
  if (is_uncertain) return asked.done(std::unexpected(not_known(why.text)));
  // A store whose file was moved, for instance, takes the whole book.
  if (std::exchange(asked.was_asked_again, true)) {
    return asked.done(std::unexpected(not_made(why.text)));
  }
  waiting_.push_front(std::move(asked));
  wants_whole_ = true;
}

void SiteBook::carry_out(const stage::Change& change, bool wants_replacing) {
  const Waiting done = std::move(*std::exchange(current_, std::nullopt));
  const SiteGrowth growth = growth_of(change.operation, live_.book().state());
  if (growth.replaces_rules) {
    size_.reset();
  } else if (size_) {
    *size_ += growth.most;
  }
  control::Envelope reply = rules_.commit(done.request, change, done.read);
  is_long_ = wants_replacing;
  if (done.done) return done.done(std::move(reply));
  spdlog::info("{}: the change is made whose outcome was not known", done.caller.name);
}

// It has ended, kept or not.
void SiteBook::end_due(const stage::BookOperation& due) {
  const auto record = stage::to_record(due, live_.book().state().number + 1);
  rules_.commit(due);
  if (is_behind_) return;  // the whole book follows
  keep(record.value(), false, [this](const Kept& kept) {
    is_behind_ = !kept.outcome;
    is_long_ = kept.wants_replacing;
  });
}

void SiteBook::keep(std::string record, bool is_uncertain, std::function<void(const Kept&)> kept) {
  is_busy_ = true;
  store_.ask(
      [record](SiteStore& store) {
        Kept appended = {.outcome = store.append(record)};
        appended.wants_replacing = appended.outcome && store.wants_replacing();
        return appended;
      },
      [this, record, is_uncertain, kept = std::move(kept)](Kept appended) {
        appended.is_uncertain = is_uncertain;
        if (!appended.outcome) failed(appended.outcome.error());
        if (!appended.outcome && appended.outcome.error().why == Why::unreachable) {
          retry_.expires_after(limits_.pause);
          return retry_.async_wait([this, record, kept](std::error_code error) {
            if (!error && !is_stopped_) keep(record, true, kept);
          });
        }
        if (appended.outcome) works();
        is_busy_ = false;
        kept(appended);
        next();
      });
}

void SiteBook::keep_whole() {
  is_busy_ = true;
  store_.ask([book = live_.book().snapshot()](SiteStore& store) { return store.replace(book); },
             [this](const SiteStore::Outcome<void>& outcome) {
               is_busy_ = false;
               if (outcome) {
                 is_behind_ = wants_whole_ = is_long_ = false;
                 works();
                 return next();
               }
               failed(outcome.error());
               const bool was_wanted = std::exchange(wants_whole_, false) || is_behind_;
               is_long_ = false;
               if (was_wanted) refuse_waiting(outcome.error());
               // A store that did not answer may have the whole book: then it is asked for again.
               if (outcome.error().why == Why::unreachable) is_behind_ = true;
               if (!is_behind_) return next();
               keep_whole_later();
             });
}

void SiteBook::keep_whole_later() {
  retry_.expires_after(pause_);
  pause_ = std::min(2 * pause_, limits_.most_pause);
  retry_.async_wait([this](std::error_code error) {
    if (!error) next();
  });
}

void SiteBook::works() {
  pause_ = limits_.pause;
  if (std::exchange(is_troubled_, false)) spdlog::info("store: it answers again");
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
  if (!waiting_.empty()) first = std::min(first.value_or(kNever), waiting_.front().until);
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
