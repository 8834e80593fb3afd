#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/saved/saved_state.h"
#include "schedulers/allocated_limit.h"
#include "schedulers/limits.h"
#include "schedulers/policy.h"
#include "schedulers/token_bucket.h"
#include "schedulers/turns.h"

namespace vpfs {

// The rate limits of all flows. A flow has at most one bucket of bytes and one of operations, and
// both must allow a request. The policies of all traffic classes share the limits, and so may
// several schedulers: a limit holds for everything that a flow does.
//
// Several schedulers (users) that wait for the tokens of one flow take turns, in whatever order
// they are asked and however large their requests are. A user that has had its turn gives way to
// users that were refused and have not: until their tokens have come, and then once more for the
// shortest time. A user without room delays the others no longer than that.
//
// A coordinator may limit a flow further (allocate()). The buckets of its limits fill at the
// smaller rate, the share's or the coordinator's, and have the share's burst if it has a rate, else
// AllocatedLimit::burst_of(). So a flow gets no more than a burst + the integral of the smaller
// rate, however the rates change, and a limit above the share's changes nothing. Its limits, even
// zero, make no request fail: a queue's head whose oldest request has waited for half of the time
// that requests may be held (set_hold()) passes them, but not the limits of the share. So all
// requests of a queue leave them behind in the first half of their time, however many there are.
// A request that passes takes the tokens that are there, leaves no debt, does not give way to other
// users for those tokens, and is marked (IoRequest::passed_limit).
class RateLimits {
 public:
  // What a request takes from the bucket of bytes.
  enum class Unit : std::uint8_t { bytes, cost };

  // A user of the limits: a number below kMostUsers.
  using User = std::uint8_t;
  static constexpr User kMostUsers = 64;

  explicit RateLimits(Unit unit = Unit::bytes) : unit_(unit) {}
  RateLimits(const RateLimits&) = delete;
  RateLimits& operator=(const RateLimits&) = delete;

  // Adds a user, until leave() frees its number. Users beyond kMostUsers share the last number.
  // share(): several policies of one user take tokens from now on.
  [[nodiscard]] User join();
  void leave(User user);
  void share() { shared_ = true; }

  // Sets or lifts the limits of the share. An unchanged limit keeps its tokens, so every user may
  // call this. Flows beyond the last limited one take no memory.
  void set(AppId app, const Share& share, TimePoint now);
  // Sets the rate alone. It may be below what configurations allow; zero lets only the tokens in
  // the bucket pass.
  void set_rate(AppId app, std::uint64_t rate, std::uint64_t burst, bool realtime, TimePoint now);
  void lift(AppId app);

  // Sets the coordinator's limits of a flow; those of its share stay as they are. Limits that are
  // the same change nothing, so every user may call this. forget() is for a number that becomes
  // another flow's: its limits then begin anew.
  void allocate(AppId app, const Limits& limits, TimePoint now);
  void forget(AppId app);
  [[nodiscard]] bool is_allocated(AppId app) const {
    return has_row(app) && (limit(app).kinds & kAllocated) != 0;
  }
  [[nodiscard]] Limits allocated(AppId app) const;
  // How long requests may be held. Users then place the heads of allocated flows again.
  static constexpr Duration kHold = std::chrono::seconds(10);  // unless set_hold() was called
  void set_hold(Duration hold) {
    pass_after_ = std::clamp(hold, Duration::zero(), kLongestHold) / 2;
  }

  // When a queue's head passes whatever a coordinator's limits or service elsewhere say. `oldest`:
  // the earliest arrival in the queue.
  [[nodiscard]] TimePoint passes_at(TimePoint oldest) const { return oldest + pass_after_; }

  [[nodiscard]] bool limited(AppId app) const { return has_row(app) && limit(app).kinds != 0; }
  [[nodiscard]] bool limited_by_share(AppId app) const {
    return has_row(app) && (limit(app).kinds & (kBytes | kOperations)) != 0;
  }
  // When all buckets of the share allow the request; the past for a flow without buckets.
  [[nodiscard]] TimePoint ready_at(const IoRequest& request) const;
  // When the limits of the flow allow the head of a queue. That is later than `now` where the user
  // gives way to another one. The first is for flows that are not allocated. `oldest`: the earliest
  // arrival in the queue.
  [[nodiscard]] TimePoint allowed_at(const IoRequest& head, User user, TimePoint now) {
    return users_ > 1 ? share_in_turn(head, user, now) : ready_at(head);
  }
  [[nodiscard]] TimePoint allowed_by_both_at(const IoRequest& head, TimePoint oldest, User user,
                                             TimePoint now);
  // Whether a head that was allowed once may not be any more: only the policy of another traffic
  // class, or another user, may have taken the flow's tokens meanwhile.
  [[nodiscard]] bool may_have_changed() const { return shared_; }
  // Why a head waits for a limit; `eligible` is not set if it does not. `by_share` is the reason if
  // the share's limit is the stricter one.
  [[nodiscard]] WaitReason why_waiting(const IoRequest& head, TimePoint oldest,
                                       std::string_view by_share, TimePoint now) const;
  // Fetches a flow's limit into the cache.
  void prefetch(std::uint32_t index) const {
    if (index < rows_) __builtin_prefetch(&limits_[index]);
  }
  // The same of all that a coordinator's limits of the flow change.
  void prefetch_all(std::uint32_t index) const {
    if (index >= allocated_.size()) return;
    const auto* const limit = reinterpret_cast<const char*>(&limits_[index]);
    for (std::size_t at = 0; at < sizeof(Limit); at += 64) __builtin_prefetch(limit + at);
    const auto* const allocated = reinterpret_cast<const char*>(&allocated_[index]);
    for (std::size_t at = 0; at < sizeof(Allocated); at += 64) __builtin_prefetch(allocated + at);
    if (index < metadata_.size()) __builtin_prefetch(&metadata_[index]);
  }
  // Does nothing for a flow without a limit.
  void take(IoRequest& request, User user, TimePoint now) {
    if (!limited(request.app)) return;
    Limit& of = limits_[index(request.app)];
    if (of.kinds != kBytes || users_ > 1) return take_of_each(of, request, user, now);
    of.bytes.take(amount(request), taken_from(of, now));
  }
  // A request was given more than it took. Does nothing for a flow without a limit of bytes.
  void take_more(const IoRequest& request, Bytes size, TimePoint now);
  // A queue of a limited flow becomes backlogged, or empty; every queue of every user reports it. A
  // backlog keeps no tokens from before it began.
  void begin_backlog(AppId app, TimePoint now);
  void end_backlog(AppId app);
  // The head of a user's queue of a limited flow was withdrawn, so it no longer claims its tokens.
  void give_up(AppId app, User user);

  // The tokens of a flow, those of a coordinator's limits among them, for a successor. A limit that
  // the flow has not over there is left out. Users then place the heads of the flow again.
  void save(AppId app, SavedState& to);
  void restore(AppId app, const SavedState& from, TimePoint now);

  // How many flows there is memory for.
  [[nodiscard]] std::size_t size() const { return rows_; }
  // The rate of the flow's bucket of bytes. REQUIRES: it has one.
  [[nodiscard]] std::uint64_t rate(AppId app) const { return limit(app).bytes.rate(); }
  [[nodiscard]] std::uint64_t burst(AppId app) const { return limit(app).bytes.depth(); }
  // The tokens of a flow, for status.
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const;

 private:
  static constexpr Duration kLongestHold = Duration(std::int64_t{1} << 60);
  static constexpr std::uint8_t kBytes = 1;
  static constexpr std::uint8_t kOperations = 2;
  static constexpr std::uint8_t kAllocated = 4;  // has limits in allocated_

  struct alignas(64) Limit {
    TokenBucket bytes;
    TimePoint backlog_since = {};
    std::uint8_t kinds = 0;
    bool realtime = false;
    std::uint32_t queues = 0;  // that have a backlog
    TokenBucket operations;
    Turns turns;
  };
  struct Allocated {
    Limits limits;
    AllocatedLimit bytes;
    AllocatedLimit operations;
  };
  // A coordinator's limit of metadata operations, which no share has. Whoever waits for other
  // tokens takes no turns with those who wait for these.
  struct Metadata {
    AllocatedLimit limit;
    Turns turns;
  };

  static std::size_t index(AppId app) { return static_cast<std::size_t>(app); }
  [[nodiscard]] bool has_row(AppId app) const { return index(app) < rows_; }
  [[nodiscard]] const Limit& limit(AppId app) const { return limits_[index(app)]; }
  // nullptr: the flow has no limit, and is not to get one.
  Limit* find(AppId app, bool make);
  [[nodiscard, gnu::noinline]] TimePoint share_in_turn(const IoRequest& head, User user,
                                                       TimePoint now);
  [[nodiscard]] TimePoint in_turn(AppId app, User user, const Turns::Ready& ready, TimePoint now);
  // When the coordinator's limits, except that of metadata operations, allow the request.
  [[nodiscard]] TimePoint most_ready_at(const IoRequest& request) const;
  [[nodiscard]] TimePoint allocated_ready_at(const IoRequest& request) const;
  // Whether a bucket of metadata operations is there that it takes from.
  [[nodiscard]] bool takes_metadata(const IoRequest& request) const {
    return request.kind == IoKind::metadata && index(request.app) < metadata_.size();
  }
  [[nodiscard]] TimePoint metadata_allowed_at(const IoRequest& head, TimePoint passes, User user,
                                              TimePoint now);
  // REQUIRES: the flow has a bucket of operations.
  [[nodiscard]] TimePoint ready_with_operations_at(const Limit& of, const IoRequest& request) const;
  // take() of a flow with several buckets, or among users that take turns.
  void take_of_each(Limit& of, IoRequest& request, User user, TimePoint now);
  void fit_allocated(AppId app, TimePoint now);
  void fit_metadata(AppId app, TimePoint now);
  void take_allocated(IoRequest& request, TimePoint from, TimePoint now);
  [[nodiscard]] static TimePoint taken_from(const Limit& limit, TimePoint now) {
    return limit.realtime && limit.queues > 0 ? limit.backlog_since : now;
  }
  // By an administrator, or by a policy that reckons with what the depths of former rates lack.
  enum class Change : std::uint8_t { asked, calculated };
  void set_bucket(Limit& limit, std::uint8_t kind, std::uint64_t rate, std::uint64_t depth,
                  Change how, TimePoint now);
  [[nodiscard]] std::uint64_t amount(const IoRequest& request) const {
    return unit_ == Unit::bytes ? request.size.count : request.cost;
  }

  Unit unit_;
  bool shared_ = false;  // once it is true it stays; until then no turns are used
  std::uint64_t user_set_ = 0;
  std::size_t users_ = 0;
  std::vector<Limit> limits_;
  std::size_t rows_ = 0;              // limits_.size(), which is a division
  std::vector<Allocated> allocated_;  // by flow, up to the last one that ever had any
  std::vector<Metadata> metadata_;    // likewise
  Duration pass_after_ = kHold / 2;
};

inline TimePoint RateLimits::ready_at(const IoRequest& request) const {
  if (!limited(request.app)) return TimePoint::min();
  const Limit& of = limit(request.app);
  if ((of.kinds & kOperations) == 0) {
    return (of.kinds & kBytes) != 0 ? of.bytes.ready_at(amount(request)) : TimePoint::min();
  }
  return ready_with_operations_at(of, request);
}

}  // namespace vpfs
