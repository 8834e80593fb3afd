#include "control/admin/past_questions.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "control/wire/protocol.h"

namespace vpfs::control {
namespace {

// Clocks of two hosts differ, and a span may end a little after the question.
constexpr std::chrono::seconds kAhead(2);
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 40;

std::chrono::seconds seconds(std::uint64_t count) {
  return std::chrono::seconds(std::min(count, static_cast<std::uint64_t>(kMostSeconds)));
}

WallTime time(std::int64_t at) {
  return WallTime(std::chrono::seconds(std::clamp<std::int64_t>(at, 0, kMostSeconds)));
}

}  // namespace

std::expected<insight::Past, Error> PastQuestions::read(const Past& request, WallTime now) const {
  WallTime from = now - seconds(request.back_seconds());
  WallTime to = now + kAhead;
  if (request.back_seconds() == 0) {
    from = time(request.from_at());
    to = time(request.to_at());
    if (from >= to) {
      return std::unexpected(make_error(Error::INVALID, "to_at", "expected a time after from_at"));
    }
    if (from > now + kAhead) {
      return std::unexpected(make_error(Error::INVALID, "from_at", "that time is yet to come"));
    }
  }
  return insight::past_of(keeper_.history(), from, to);
}

std::expected<insight::Past, Error> PastQuestions::read_for_own(const Past& request, WallTime now) {
  if (second_ != now) answers_ = 0;
  second_ = now;
  if (answers_ == kForOwn) {
    return std::unexpected(make_error(Error::UNAVAILABLE, "",
                                      "too many users ask about the past: try again in a second"));
  }
  ++answers_;
  return read(request, now);
}

PastReply PastQuestions::reply(const insight::Past& past, const PastChoice& choice) const {
  PastReply made;
  fill(made, past, choice);
  const stage::History& history = keeper_.history();
  if (const std::optional<WallTime> begin = history.begin()) {
    made.set_known_from_at(seconds_since_epoch(*begin));
  }
  made.set_most_cost_per_second(history.most_cost_per_second());
  return made;
}

}  // namespace vpfs::control
