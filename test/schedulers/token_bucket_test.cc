#include "schedulers/token_bucket.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "base/wide.h"
#include "test/schedulers/draw.h"
#include "test/support/rate_watch.h"

namespace vpfs {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr std::uint64_t kMostRate = std::uint64_t{1} << 50;
// A bucket never looks further ahead than this.
constexpr std::int64_t kLongest = std::int64_t{1} << 60;

TimePoint at(std::int64_t nanoseconds) {
  return TimePoint(Duration(nanoseconds));
}

SignedWide rounded_up(SignedWide dividend, SignedWide divisor) {
  return dividend / divisor + (dividend % divisor > 0 ? 1 : 0);
}

// The textbook bucket: tokens are filled as time passes, in units of 10^-9, so that every number is
// exact.
class BucketModel {
 public:
  BucketModel(std::uint64_t rate, std::uint64_t depth)
      : rate_(rate), depth_(SignedWide{depth} * kNanoseconds), level_(depth_) {}

  void fill(TimePoint now) {
    level_ = std::min(depth_, level_ + rate_ * (now - filled_).count());
    filled_ = now;
  }
  void take(std::uint64_t tokens, TimePoint now) {
    fill(now);
    level_ = std::max(level_ - SignedWide{tokens} * kNanoseconds, depth_ - rate_ * kLongest);
  }
  void change(std::uint64_t rate, std::uint64_t depth, TimePoint now) {
    fill(now);
    const SignedWide missing = std::min(depth_ - level_, SignedWide{rate} * kLongest);
    rate_ = rate;
    depth_ = SignedWide{depth} * kNanoseconds;
    level_ = depth_ - missing;
  }
  // How long from `now` until the bucket holds the tokens, or is full; zero: it does.
  [[nodiscard]] SignedWide wait(std::uint64_t tokens, TimePoint now) {
    fill(now);
    const SignedWide missing = std::min(SignedWide{tokens} * kNanoseconds, depth_) - level_;
    return missing <= 0 ? 0 : rounded_up(missing, rate_);
  }
  [[nodiscard]] SignedWide level(TimePoint now) {
    fill(now);
    return level_ >= 0 ? level_ / kNanoseconds : -rounded_up(-level_, kNanoseconds);
  }

 private:
  SignedWide rate_;
  SignedWide depth_;
  SignedWide level_;
  TimePoint filled_ = {};
};

void expect_same(const TokenBucket& bucket, BucketModel& model, std::uint64_t tokens,
                 TimePoint now) {
  const TimePoint ready = bucket.ready_at(tokens);
  const SignedWide wait = model.wait(tokens, now);
  if (wait == 0) {
    ASSERT_LE(ready, now);
  } else {
    ASSERT_TRUE(SignedWide{(ready - now).count()} == wait)
        << "waits " << (ready - now).count() << ", should " << static_cast<double>(wait);
  }
  const SignedWide level = std::max<SignedWide>(model.level(now), INT64_MIN);
  ASSERT_TRUE(SignedWide{bucket.level(now)} == level)
      << "holds " << bucket.level(now) << ", should " << static_cast<double>(level);
}

// Requests that wait for the bucket, with pauses: to the nanosecond when the exact model allows
// each, and over no interval more than was promised.
TEST(TokenBucket, RequestsThatWaitGoAtTheExactTimeAndNoIntervalGetsMoreThanPromised) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Draw draw(seed);
    const std::uint64_t rate = draw.any(40);
    const std::uint64_t depth = draw.any(34);
    const std::uint32_t size_bits = static_cast<std::uint32_t>(draw(0, 34));
    TokenBucket bucket(rate, depth);
    BucketModel model(rate, depth);
    RateWatch watch(rate);
    std::uint64_t largest = depth;
    TimePoint now = at(static_cast<std::int64_t>(draw.any(40)));
    for (int i = 0; i < 60; ++i) {
      if (draw(0, 3) == 0) now += Duration(draw.any(36));
      // The sum stays below the longest time that a bucket can tell.
      const std::uint64_t tokens = std::min(draw.any(size_bits), rate << 23);
      expect_same(bucket, model, tokens, now);
      if (HasFatalFailure()) return;
      now = std::max(now, bucket.ready_at(tokens));
      bucket.take(tokens, now);
      model.take(tokens, now);
      watch.served(tokens, now);
      largest = std::max(largest, tokens);
    }
    ASSERT_TRUE(watch.never_over(largest)) << watch.most_over() << " of " << largest;
  }
}

TEST(TokenBucket, LargestAndSmallestValuesAreAsExactAsOthers) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Draw draw(seed);
    const std::uint64_t rates[] = {1, 2, 3, kMostRate - 1, kMostRate, draw.any(50)};
    const std::uint64_t sizes[] = {1, (std::uint64_t{1} << 33) - 1, std::uint64_t{1} << 33,
                                   std::uint64_t{1} << 40, draw.any(40)};
    const std::uint64_t rate = rates[draw(0, 5)];
    const std::uint64_t depth = sizes[draw(0, 4)];
    TokenBucket bucket(rate, depth);
    BucketModel model(rate, depth);
    std::int64_t now = static_cast<std::int64_t>(draw.any(55));
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t tokens = sizes[draw(0, 4)];
      expect_same(bucket, model, tokens, at(now));
      if (HasFatalFailure()) return;
      bucket.take(tokens, at(now));
      model.take(tokens, at(now));
      expect_same(bucket, model, draw.any(40), at(now));
      if (HasFatalFailure()) return;
      now = std::min(now + static_cast<std::int64_t>(draw.any(55)), std::int64_t{1} << 55);
    }
  }
}

TEST(TokenBucket, AChangeKeepsExactlyWhatIsMissing) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Draw draw(seed);
    std::uint64_t rate = draw.any(50);
    std::uint64_t depth = draw.any(40);
    TokenBucket bucket(rate, depth);
    BucketModel model(rate, depth);
    std::int64_t now = static_cast<std::int64_t>(draw.any(40));
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t tokens = draw.any(40);
      bucket.take(tokens, at(now));
      model.take(tokens, at(now));
      now += static_cast<std::int64_t>(draw.any(40));
      if (draw(0, 1) == 0) rate = draw.any(50);
      if (draw(0, 1) == 0) depth = draw.any(40);
      bucket.change(rate, depth, at(now));
      model.change(rate, depth, at(now));
      ASSERT_EQ(bucket.rate(), rate);
      ASSERT_EQ(bucket.depth(), depth);
      expect_same(bucket, model, draw.any(40), at(now));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TokenBucket, ASmallerDepthThatWasAskedForOwesNothing) {
  TokenBucket bucket(100, 1000);
  bucket.take(1000, at(0));
  bucket.fit(100, 10, at(0));
  EXPECT_EQ(bucket.level(at(0)), 0);
  EXPECT_EQ(bucket.ready_at(10), at(kNanoseconds / 10));
  bucket.fit(100, 1000, at(kNanoseconds));  // what is missing stays missing
  EXPECT_EQ(bucket.level(at(kNanoseconds)), 1000);
  bucket.take(1200, at(kNanoseconds));
  bucket.fit(100, 10, at(kNanoseconds));
  EXPECT_EQ(bucket.level(at(kNanoseconds)), -200) << "a debt stays";
}

// With a constant depth, changing rates give no interval more than the rates add up to.
TEST(TokenBucket, NoIntervalGetsMoreThanPromisedWhileTheRateChanges) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Draw draw(seed);
    const std::uint64_t depth = draw.any(30);
    std::uint64_t rate = draw.any(34);
    TokenBucket bucket(rate, depth);
    RateWatch watch(rate);
    std::uint64_t largest = depth;
    TimePoint now = {};
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t tokens = draw.any(30);
      largest = std::max(largest, tokens);
      if (draw(0, 2) == 0) {
        now = std::min(now + Duration(draw.any(34)), std::max(now, bucket.ready_at(tokens)));
        rate = draw.any(34);
        bucket.change(rate, depth, now);
        watch.change_rate(rate, now);
      }
      now = std::max(now, bucket.ready_at(tokens));
      bucket.take(tokens, now);
      watch.served(tokens, now);
    }
    ASSERT_TRUE(watch.never_over(largest)) << "seed " << seed << ": " << watch.most_over();
  }
}

TEST(TokenBucket, WhatABucketHadBeyondItsDepthIsLostByAChange) {
  TokenBucket bucket(1000, 10);
  bucket.take(10, at(0));
  bucket.change(1000, 10, at(60 * kNanoseconds));
  bucket.take(10, at(0));  // as if all had been kept from the beginning on
  EXPECT_EQ(bucket.ready_at(10), at(60 * kNanoseconds + 10'000'000));
}

TEST(TokenBucket, ARequestLargerThanTheDepthPassesWhenItIsFullAndIsPaidForAfterwards) {
  TokenBucket bucket(1000, 10);
  EXPECT_LE(bucket.ready_at(500), at(0));
  bucket.take(500, at(0));
  EXPECT_EQ(bucket.level(at(0)), -490);
  EXPECT_EQ(bucket.ready_at(500), at(500'000'000));
  EXPECT_EQ(bucket.ready_at(10), at(500'000'000));
  EXPECT_EQ(bucket.ready_at(1), at(491'000'000));
  EXPECT_EQ(bucket.ready_at(0), at(490'000'000));
}

// Tokens that overflowed since `from` are kept: all tokens made since then are used in the end.
TEST(TokenBucket, TakingFromAnEarlierTimeKeepsWhatOverflowedSince) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Draw draw(seed);
    const std::uint64_t rate = draw.any(30);
    const std::uint64_t depth = draw.any(20);
    const TimePoint from = at(static_cast<std::int64_t>(draw.any(40)));
    TokenBucket bucket(rate, depth);
    SignedWide taken = 0;
    TimePoint now = from + Duration(draw.any(40));
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t tokens = 1 + draw.any(20) % depth;
      now = std::max(now, bucket.ready_at(tokens));
      bucket.take(tokens, from);
      taken += tokens;
      ASSERT_TRUE((taken - depth) * kNanoseconds <= SignedWide{rate} * (now - from).count())
          << "seed " << seed;
      const SignedWide rest = std::max<SignedWide>(taken + 1 - depth, 0) * kNanoseconds;
      const SignedWide exact = rounded_up(rest, rate);
      if (depth > 1) {
        ASSERT_TRUE(SignedWide{(bucket.ready_at(1) - from).count()} <= exact) << "seed " << seed;
      }
    }
  }
}

TEST(TokenBucket, HoldsSoManyTokensAsMayGo) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Draw draw(seed);
    const std::uint64_t depth = draw.any(30);
    TokenBucket bucket(draw.any(40), depth);
    const TimePoint taken = at(static_cast<std::int64_t>(draw.any(40)));
    bucket.take(draw.any(30), taken);
    const TimePoint now = taken + Duration(draw.any(34));
    const std::int64_t level = bucket.level(now);
    ASSERT_LE(level, static_cast<std::int64_t>(depth));
    if (level >= 0) {
      ASSERT_LE(bucket.ready_at(static_cast<std::uint64_t>(level)), now) << "seed " << seed;
    }
    if (level >= -1 && level < static_cast<std::int64_t>(depth)) {
      ASSERT_GT(bucket.ready_at(static_cast<std::uint64_t>(level + 1)), now) << "seed " << seed;
    }
  }
}

// Every scheduler that shares a limit sets it.
TEST(TokenBucket, AChangeToWhatItIsAlreadyLosesNothingHoweverOften) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t rate = 1 + (random() % kMostRate >> random() % 50);
    const std::uint64_t depth = 1 + (random() >> (10 + random() % 54));
    TokenBucket bucket(rate, depth);
    TimePoint now = at(static_cast<std::int64_t>(random() >> 10));
    bucket.take(1 + random() % depth, now);
    bucket.take(1 + random() % 1000, now);
    const TokenBucket before = bucket;
    now += Duration(static_cast<std::int64_t>(random() % 1'000'000));
    for (int i = 0; i < 100; ++i) {
      bucket.change(rate, depth, now);
      bucket.change(1 + random() % kMostRate, depth, now);
      bucket.change(rate, depth, now);
    }
    ASSERT_LE(bucket.ready_at(depth) - std::max(before.ready_at(depth), now), Duration(1));
    for (int i = 0; i < 100; ++i) bucket.change(rate, depth, now);
    ASSERT_EQ(bucket.level(now), before.level(now)) << "round " << round;
  }
}

}  // namespace
}  // namespace vpfs
