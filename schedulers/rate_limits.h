#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/policy.h"
#include "schedulers/token_bucket.h"

namespace vpfs {

// The rate limits of all flows. A flow has at most one bucket of bytes and one of operations, and
// both must allow a request. The policies of all traffic classes share the limits, and so may
// several schedulers: a limit holds for everything that a flow does.
//
// Several schedulers (users) that wait for the tokens of one flow take turns, in whatever order
// they are asked and however large their requests are. A user that has had its turn gives way to
// users that were refused and have not: until their tokens have come, and then once more for the
// shortest time. A user without room delays the others no longer than that.
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

  [[nodiscard]] bool limited(AppId app) const {
    return index(app) < limits_.size() && limit(app).kinds != 0;
  }
  // When all buckets of the flow allow the request; the past for a flow without buckets.
  [[nodiscard]] TimePoint ready_at(const IoRequest& request) const;
  // As ready_at(), but later than `now` where the user gives way to another one.
  [[nodiscard]] TimePoint allowed_at(const IoRequest& request, User user, TimePoint now) {
    const TimePoint ready = ready_at(request);
    return users_ > 1 ? in_turn(request.app, user, ready, now) : ready;
  }
  // Whether a request that was allowed once still is: only the policy of another traffic class, or
  // another user, may have taken the flow's tokens meanwhile.
  [[nodiscard]] bool still_allows(const IoRequest& request, User user, TimePoint now) {
    return !shared_ || allowed_at(request, user, now) <= now;
  }
  // Fetches a flow's limit into the cache.
  void prefetch(std::uint32_t index) const {
    if (index < limits_.size()) __builtin_prefetch(&limits_[index]);
  }
  // Does nothing for a flow without a limit.
  void take(const IoRequest& request, User user, TimePoint now);
  // The flow was given more than a request took. Does nothing for a flow without a bucket of bytes.
  void take_more(AppId app, Bytes size, TimePoint now);
  // A queue of a limited flow becomes backlogged, or empty; every queue of every user reports it. A
  // backlog keeps no tokens from before it began.
  void begin_backlog(AppId app, TimePoint now);
  void end_backlog(AppId app);

  // How many flows there is memory for.
  [[nodiscard]] std::size_t size() const { return limits_.size(); }
  // The rate of the flow's bucket of bytes. REQUIRES: it has one.
  [[nodiscard]] std::uint64_t rate(AppId app) const { return limit(app).bytes.rate(); }
  // The tokens of a flow, for status.
  [[nodiscard]] StatusFields report(AppId app, TimePoint now) const;

 private:
  static constexpr std::uint8_t kBytes = 1;
  static constexpr std::uint8_t kOperations = 2;

  struct alignas(64) Limit {
    TokenBucket bytes;
    TimePoint backlog_since = {};
    std::uint8_t kinds = 0;
    bool realtime = false;
    std::uint32_t queues = 0;  // that have a backlog
    TokenBucket operations;
    // Sets of users.
    std::uint64_t served = 0;   // had their turn in this round
    std::uint64_t refused = 0;  // found no tokens since
    std::uint64_t polite = 0;   // gave way after `claimed`, the last one at `polite_at`
    TimePoint polite_at = {};
    TimePoint claimed = TimePoint::min();  // when the refused ones have their tokens
  };

  static std::size_t index(AppId app) { return static_cast<std::size_t>(app); }
  [[nodiscard]] const Limit& limit(AppId app) const { return limits_[index(app)]; }
  // nullptr: the flow has no limit, and is not to get one.
  Limit* find(AppId app, bool make);
  [[nodiscard]] TimePoint in_turn(AppId app, User user, TimePoint ready, TimePoint now);
  [[nodiscard]] static TimePoint taken_from(const Limit& limit, TimePoint now) {
    return limit.realtime && limit.queues > 0 ? limit.backlog_since : now;
  }
  void set_bucket(Limit& limit, std::uint8_t kind, std::uint64_t rate, std::uint64_t depth,
                  TimePoint now);
  [[nodiscard]] std::uint64_t amount(const IoRequest& request) const {
    return unit_ == Unit::bytes ? request.size.count : request.cost;
  }

  Unit unit_;
  bool shared_ = false;
  std::uint64_t user_set_ = 0;
  std::size_t users_ = 0;
  std::vector<Limit> limits_;
};

}  // namespace vpfs
