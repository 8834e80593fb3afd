#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/policy.h"
#include "schedulers/token_bucket.h"

namespace vpfs {

// The rate limits of all flows: for each at most one bucket of bytes and one of operations, which
// both must allow a request. Shared by the policies of all traffic classes, so that a limit holds
// for everything that a flow does.
class RateLimits {
 public:
  // What a request takes from the bucket of bytes.
  enum class Unit : std::uint8_t { bytes, cost };

  explicit RateLimits(Unit unit = Unit::bytes) : unit_(unit) {}

  // Sets or lifts the limits that the share has.
  void set(AppId app, const Share& share, TimePoint now);
  // A rate alone, which may be below any that configurations allow: zero lets nothing pass beyond
  // what the bucket holds.
  void set_rate(AppId app, std::uint64_t rate, std::uint64_t burst, bool realtime, TimePoint now);
  void lift(AppId app);

  [[nodiscard]] bool limited(AppId app) const { return limit(app).kinds != 0; }
  // When all buckets of the flow allow the request; the past if it has none.
  [[nodiscard]] TimePoint ready_at(const IoRequest& request) const;
  // Whether a request that was allowed once still is: only the policy of another traffic class may
  // have used the flow's tokens meanwhile.
  [[nodiscard]] bool still_allows(const IoRequest& request, TimePoint now) const {
    return !shared_ || ready_at(request) <= now;
  }
  // Several policies use these limits from now on.
  void share() { shared_ = true; }
  // Fetches a flow's limit into the cache.
  void prefetch(std::uint32_t index) const {
    if (index < limits_.size()) __builtin_prefetch(&limits_[index]);
  }
  // REQUIRES (both): limited(request.app).
  void take(const IoRequest& request, TimePoint now);
  // Beyond what a request took: the flow was given more. Nothing if it has no bucket of bytes.
  void take_more(AppId app, Bytes size, TimePoint now);
  // The flow, which had nothing queued, has from now on: no token is kept from before.
  void begin_backlog(AppId app, TimePoint now) { limits_[index(app)].backlog_since = now; }

  // Of the bucket of bytes. REQUIRES: it has one.
  [[nodiscard]] std::uint64_t rate(AppId app) const { return limit(app).bytes.rate(); }
  // Adds what it knows.
  void report(AppId app, TimePoint now, FlowReport& report) const;

 private:
  static constexpr std::uint8_t kBytes = 1;
  static constexpr std::uint8_t kOperations = 2;

  struct alignas(64) Limit {
    TokenBucket bytes;
    TimePoint backlog_since = {};
    std::uint8_t kinds = 0;
    bool realtime = false;
    TokenBucket operations;
  };

  static std::size_t index(AppId app) { return static_cast<std::size_t>(app); }
  [[nodiscard]] const Limit& limit(AppId app) const { return limits_[index(app)]; }
  Limit& make(AppId app);
  void set_bucket(Limit& limit, std::uint8_t kind, std::uint64_t rate, std::uint64_t depth,
                  TimePoint now);
  [[nodiscard]] std::uint64_t amount(const IoRequest& request) const {
    return unit_ == Unit::bytes ? request.size.count : request.cost;
  }

  Unit unit_;
  bool shared_ = false;
  std::vector<Limit> limits_;
};

}  // namespace vpfs
