// What a coordinator's limits do to real requests when the coordinator, or the thread that listens
// to it, falls silent. By the wall clock.

#include <chrono>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/clock/by_clock.h"
#include "test/support/clock/stall_watch.h"
#include "test/support/control/raw_peer.h"
#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"
#include "test/support/stopped_thread.h"

namespace vpfs::test {
namespace {

using orangefs::Tag;
using Clock = std::chrono::steady_clock;

constexpr auto kLease = 500ms;
constexpr auto kLong = 60s;
// What a held request may take to leave after the lease's end.
constexpr auto kLate = 60ms;
constexpr std::int64_t kSize = 1 << 20;  // more than any burst

// A client whose requests go into the virtual PFS "a", and a coordinator.
class ControlLease : public ::testing::Test {
 protected:
  explicit ControlLease(const std::string& timeouts = "")
      : proxy_({.upstream = server_.port(),
                .timeouts = timeouts,
                .control = fmt::format("socket: {}", socket()),
                .virtual_pfs = "a: {weight: 1}",
                .rules = "[{match: {hint: {jobid: a}}, virtual_pfs: a}]"}),
        link_(open_link(proxy_, server_)),
        coordinator_(socket()) {}

  void SetUp() override {
    ASSERT_TRUE(coordinator_.greet());
    control::Cycle cycle;
    cycle.set_sequence(1);
    ASSERT_TRUE(coordinator_.send(envelope_of(cycle)));
    const auto flows = coordinator_.receive();
    ASSERT_TRUE(flows && flows->has_flows());
    for (const control::Flow& flow : flows->flows().flows()) {
      if (flow.name() == "a") flow_ = flow.id();
    }
    const auto report = coordinator_.receive();
    ASSERT_TRUE(report && report->has_report());
  }

  [[nodiscard]] std::string socket() const { return directory_.path() / "control.sock"; }
  [[nodiscard]] control::Envelope envelope_of(control::Cycle cycle) {
    cycle.set_term(1);
    cycle.set_sequence(++sequence_);
    cycle.set_want_report(true);
    control::Envelope envelope;
    envelope.set_id(sequence_ + 1);
    *envelope.mutable_cycle() = std::move(cycle);
    return envelope;
  }
  // A limit on which no second request is due for days.
  [[nodiscard]] control::Envelope limit(std::chrono::milliseconds lease) {
    control::Cycle cycle;
    cycle.set_lease_us(static_cast<std::uint64_t>(std::chrono::microseconds(lease).count()));
    control::Allocation& allocation = *cycle.add_allocations();
    allocation.set_flow(flow_);
    allocation.set_bytes_per_second(1);
    return envelope_of(cycle);
  }
  void send_limit(std::chrono::milliseconds lease) {
    ASSERT_TRUE(coordinator_.send(limit(lease)));
    const auto report = coordinator_.receive();
    ASSERT_TRUE(report && report->has_report());
    ASSERT_TRUE(report->report().applied()) << report->report().refused().text();
  }
  void send_reads(Tag first, Tag count) {
    for (Tag tag = first; tag < first + count; ++tag) {
      ASSERT_TRUE(link_.client.send(io_request(tag, {.size = kSize, .job = "a"})));
    }
  }
  // Four requests, of which one takes all that the limit has and the rest is held.
  void hold_three() {
    send_limit(kLong);
    send_reads(1, 4);
    ASSERT_TRUE(link_.server.receive());
    ASSERT_TRUE(proxy_.wait_for_queued(3));
  }
  // All three leave at the end of a lease that began between the two times.
  void expect_to_leave(Clock::time_point not_before, Clock::time_point began) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(link_.server.receive());
      const auto now = Clock::now();
      EXPECT_GE(milliseconds_between(not_before, now), kLease.count()) << "request " << i;
      EXPECT_LE(milliseconds_between(began, now), (kLease + kLate + stalls_.longest()).count())
          << "request " << i << kByClock;
    }
  }
  static double milliseconds_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
  }

  TemporaryDirectory directory_;
  FakeDataServer server_;
  ProxyProcess proxy_;
  ProxiedLink link_;
  RawPeer coordinator_;
  std::uint32_t flow_ = 0;
  std::uint64_t sequence_ = 0;
  StallWatch stalls_;
};

TEST_F(ControlLease, HeldRequestsLeaveWhenTheLeaseOfASilentCoordinatorEnds) {
  hold_three();
  const auto before = Clock::now();
  send_limit(kLease);
  expect_to_leave(before, Clock::now());
}

TEST_F(ControlLease, HeldRequestsLeaveAtOnceWhenTheCoordinatorTakesItsLimitsBack) {
  hold_three();
  control::Cycle back;
  back.set_complete(true);
  const auto before = Clock::now();
  ASSERT_TRUE(coordinator_.send(envelope_of(back)));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(link_.server.receive());
  EXPECT_LE(milliseconds_between(before, Clock::now()), (kLate + stalls_.longest()).count())
      << kByClock;
  const auto report = coordinator_.receive();
  ASSERT_TRUE(report && report->has_report());
  EXPECT_TRUE(report->report().applied()) << report->report().refused().text();
}

TEST_F(ControlLease, HeldRequestsLeaveAtItsEndThoughTheControlThreadIsStopped) {
  hold_three();
  const auto before = Clock::now();
  send_limit(kLease);
  const auto after = Clock::now();
  const auto stopped = StoppedThread::stop(proxy_.process().pid(), "vpfs-control");
  if (!stopped) GTEST_SKIP() << "this test may not stop a thread of the proxy";
  ASSERT_TRUE(coordinator_.send(limit(kLong)));
  EXPECT_FALSE(coordinator_.receive(100ms)) << "the control thread is not stopped";
  expect_to_leave(before, after);
}

TEST_F(ControlLease, ARenewedLeaseHoldsOn) {
  hold_three();
  const auto begin = Clock::now();
  while (Clock::now() < begin + 2 * kLease) {
    const auto renewed = Clock::now();
    send_limit(kLease);
    if (!link_.server.readable(kLease / 4)) continue;
    EXPECT_GE(milliseconds_between(renewed, Clock::now()), kLease.count()) << "the lease holds";
    GTEST_SKIP() << "this machine is too busy to renew a lease in time";
  }
}

class ControlLeaseBesideAShortHold : public ControlLease {
 protected:
  ControlLeaseBesideAShortHold() : ControlLease("hold: 2 s") {}
};

TEST_F(ControlLeaseBesideAShortHold, NoRequestFailsBecauseOfALimit) {
  send_limit(kLong);
  send_reads(1, 1);
  ASSERT_TRUE(link_.server.receive());
  const auto sent = Clock::now();
  send_reads(2, 1);
  // Half of the time for which a request may be held.
  ASSERT_TRUE(link_.server.receive()) << "it failed";
  const auto left = Clock::now();
  EXPECT_GE(milliseconds_between(sent, left), 1000) << "it was not held";
  EXPECT_LE(milliseconds_between(sent, left), 1500 + static_cast<double>(stalls_.longest().count()))
      << kByClock;
  ASSERT_TRUE(link_.server.send(io_response(2, 0)));
}

}  // namespace
}  // namespace vpfs::test
