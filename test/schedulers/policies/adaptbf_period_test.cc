#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/adaptbf.h"

namespace vpfs {
namespace {

using namespace std::chrono_literals;

// Many jobs, each of which asks for some tokens in the first period.
struct ManyJobs {
  static constexpr std::uint32_t kJobs = 20'000;
  static constexpr Cost kToken = 64 * kKiB;
  static constexpr TimePoint kBegin = TimePoint{} + 1s;
  static constexpr TimePoint kEnd = kBegin + 100ms;  // of the first period
  static constexpr std::uint64_t kTokensOfAPeriod = 3 * kJobs;
  static constexpr std::uint64_t kCapacity = kTokensOfAPeriod * kToken * 10;

  ManyJobs() : requests(2 * std::size_t{kJobs}) {
    for (std::uint32_t job = 0; job < kJobs; ++job) {
      (void)policy.set_share(AppId{job}, {.weight = 1 + job % 7}, kBegin);
      enqueue(job, requests[job], (1 + job % 5) * kToken, kBegin);
    }
  }

  void enqueue(std::uint32_t job, IoRequest& request, Cost cost, TimePoint now) {
    request.app = AppId{job};
    request.cost = cost;
    request.size = {cost};
    request.arrival = now;
    policy.enqueue(request, now);
  }
  std::uint64_t rate_of(std::uint32_t job) const {
    const auto rate = policy.report(AppId{job}, kEnd).integer("rate_now");
    return rate ? static_cast<std::uint64_t>(*rate) : 0;
  }
  std::uint32_t jobs_with_a_bucket() const {
    std::uint32_t jobs = 0;
    for (std::uint32_t job = 0; job < kJobs; ++job) jobs += rate_of(job) > 0 ? 1 : 0;
    return jobs;
  }

  AdapTbf policy{{.token = kToken, .capacity = {.configured = kCapacity}}};
  std::vector<IoRequest> requests;
};

TEST(AdapTbfPeriod, WithManyJobsItsEndIsSpreadOverCalls) {
  ManyJobs jobs;
  std::uint32_t most_in_a_call = 0;
  std::uint32_t calls = 0;
  for (std::uint32_t before = 0; before < ManyJobs::kJobs && calls < 1000; ++calls) {
    (void)jobs.policy.head(ManyJobs::kEnd);
    const std::uint32_t after = jobs.jobs_with_a_bucket();
    most_in_a_call = std::max(most_in_a_call, after - before);
    before = after;
    if (after < ManyJobs::kJobs) EXPECT_TRUE(jobs.policy.is_ending_period());
  }
  EXPECT_EQ(jobs.jobs_with_a_bucket(), ManyJobs::kJobs);
  for (int call = 0; call < 10; ++call) (void)jobs.policy.head(ManyJobs::kEnd);
  EXPECT_FALSE(jobs.policy.is_ending_period());
  EXPECT_LE(most_in_a_call, 4096U);
  EXPECT_LT(calls, 100U);
  std::uint64_t sum = 0;
  for (std::uint32_t job = 0; job < ManyJobs::kJobs; ++job) sum += jobs.rate_of(job);
  // A job that is given nothing has the least rate.
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(ManyJobs::kCapacity), ManyJobs::kJobs);
}

TEST(AdapTbfPeriod, WhatComesWhileItEndsIsNotDemandOfIt) {
  ManyJobs quiet;
  ManyJobs busy;
  (void)busy.policy.head(ManyJobs::kEnd);
  for (std::uint32_t job = ManyJobs::kJobs; job-- > 0;) {
    busy.enqueue(job, busy.requests[ManyJobs::kJobs + job], 100 * ManyJobs::kToken, ManyJobs::kEnd);
  }
  for (int call = 0; call < 1000; ++call) (void)quiet.policy.head(ManyJobs::kEnd);
  for (std::uint32_t job = 0; job < ManyJobs::kJobs; ++job) {
    ASSERT_EQ(busy.rate_of(job), quiet.rate_of(job)) << "job " << job;
  }
}

TEST(AdapTbfPeriod, JobsLeaveWhileItEnds) {
  ManyJobs jobs;
  (void)jobs.policy.head(ManyJobs::kEnd);
  for (std::uint32_t job = 0; job < ManyJobs::kJobs; job += 1000) {
    jobs.policy.withdraw(jobs.requests[job], ManyJobs::kEnd);
    jobs.policy.remove(AppId{job}, ManyJobs::kEnd);
    EXPECT_EQ(jobs.rate_of(job), 0U);
  }
  std::int64_t records = 0;
  for (std::uint32_t job = 0; job < ManyJobs::kJobs; ++job) {
    records += jobs.policy.report(AppId{job}, ManyJobs::kEnd).integer("record").value_or(0);
  }
  EXPECT_EQ(records, 0);
}

// Room for them is made, and what the allocator has borrowed must not move meanwhile.
TEST(AdapTbfPeriod, JobsComeWhileItEnds) {
  ManyJobs jobs;
  // The first call does not come to the end of the demands, and the second reads some of them.
  for (int call = 0; call < 2; ++call) (void)jobs.policy.head(ManyJobs::kEnd);
  ASSERT_TRUE(jobs.policy.is_ending_period());
  IoRequest request;
  const std::uint32_t added = 4 * ManyJobs::kJobs;
  ASSERT_TRUE(jobs.policy.set_share(AppId{added}, {.weight = 1}, ManyJobs::kEnd));
  jobs.enqueue(added, request, ManyJobs::kToken, ManyJobs::kEnd);
  for (int call = 0; call < 1000; ++call) (void)jobs.policy.head(ManyJobs::kEnd);
  EXPECT_FALSE(jobs.policy.is_ending_period());
  std::uint64_t sum = 0;
  for (std::uint32_t job = 0; job < ManyJobs::kJobs; ++job) sum += jobs.rate_of(job);
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(ManyJobs::kCapacity), ManyJobs::kJobs);
  EXPECT_EQ(jobs.rate_of(added), 0U) << "it asked for nothing in that period";
}

}  // namespace
}  // namespace vpfs
