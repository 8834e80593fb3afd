#include "stage/client_limits.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

using std::chrono::seconds;

constexpr AppId kA{1};
constexpr AppId kB{2};
constexpr AppId kQuick{99};
constexpr Duration kWhile = seconds(1);

class ClientLimitsTest : public ::testing::Test {
 protected:
  // A client with so many connections.
  ClientId client_with(std::size_t connections) {
    ClientId id{};
    for (std::size_t i = 0; i < connections; ++i) id = limits_.join("10.0.0.1 node 7");
    return id;
  }
  Held& queue(ClientId client, AppId app, std::uint64_t fingerprint = 0) {
    ios_.push_back(std::make_unique<Held>());
    Held& io = *ios_.back();
    io.app = app;
    io.client = client;
    io.arrival = now_;
    io.order = ios_.size();
    io.fingerprint = fingerprint == 0 ? 1000 + ios_.size() : fingerprint;
    limits_.queued(io, now_);
    return io;
  }
  Held* excess() { return limits_.take_excess(now_); }
  // An application whose requests go at once uses a connection now and then.
  void show_quick(ClientId client) {
    Held& io = queue(client, kQuick);
    limits_.dispatched(io, now_);
    limits_.finished(io);
  }
  // Requests of an application that are here for a while.
  std::vector<Held*> hold(ClientId client, AppId app, int count) {
    std::vector<Held*> ios;
    for (int i = 0; i < count; ++i) ios.push_back(&queue(client, app));
    now_ += kWhile;
    return ios;
  }

  ClientLimits limits_;
  TimePoint now_ = TimePoint{} + seconds(1000);
  std::vector<std::unique_ptr<Held>> ios_;
};

// One with a third of the connections for itself may need them all.
TEST_F(ClientLimitsTest, AThirdOfTheConnectionsIsLeftToOthersThatUseThem) {
  const ClientId client = client_with(12);
  show_quick(client);
  (void)hold(client, kA, 11);
  for (int others = 1; others <= 3; ++others) {
    (void)queue(client, kQuick);
    Held* const refused = excess();
    ASSERT_NE(refused, nullptr) << others;
    EXPECT_EQ(refused->app, kA);
    EXPECT_EQ(excess(), nullptr) << "a connection is free";
  }
  (void)queue(client, kQuick);
  EXPECT_EQ(excess(), nullptr) << "what is held is not beyond the allowance";
  EXPECT_EQ(limits_.report(client, now_).allowance, 8U);
  EXPECT_EQ(limits_.report(client, now_).refused, 3U);
}

TEST_F(ClientLimitsTest, NothingIsSentBackWhileAConnectionIsFree) {
  const ClientId client = client_with(12);
  show_quick(client);
  (void)hold(client, kA, 11);
  EXPECT_EQ(excess(), nullptr);
  Held& twelfth = queue(client, kA);
  EXPECT_EQ(excess(), &twelfth);
  EXPECT_EQ(excess(), nullptr);
}

// No request would gain if one of them were sent back.
TEST_F(ClientLimitsTest, NothingIsSentBackIfAllApplicationsWaitEquallyLong) {
  const ClientId client = client_with(12);
  for (int round = 0; round < 20; ++round) {
    std::vector<Held*> ios;
    for (int i = 0; i < 6; ++i) {
      for (const AppId app : {kA, kB}) ios.push_back(&queue(client, app));
    }
    EXPECT_EQ(excess(), nullptr) << round;
    now_ += kWhile;
    EXPECT_EQ(excess(), nullptr) << round;
    for (Held* io : ios) {
      limits_.dispatched(*io, now_);
      limits_.finished(*io);
      now_ += std::chrono::milliseconds(40);
    }
  }
  // One of them is held now, and the other one is not.
  (void)hold(client, kA, 11);
  for (int round = 0; round < 20; ++round) show_quick(client);
  Held& another = queue(client, kA);
  EXPECT_EQ(excess(), &another);
}

// It has a request here at any time, so it gets its share of the server. Its waits are short
// because its requests are small, and a connection more would change nothing.
TEST_F(ClientLimitsTest, AnApplicationThatAlwaysHasARequestWaitingNeedsNoConnection) {
  const ClientId client = client_with(12);
  std::deque<Held*> small = {&queue(client, kB), &queue(client, kB)};
  std::vector<Held*> large = hold(client, kA, 10);
  EXPECT_EQ(excess(), nullptr);
  for (int round = 0; round < 400; ++round) {
    now_ += std::chrono::milliseconds(5);
    limits_.dispatched(*small.front(), now_);
    limits_.finished(*small.front());
    small.pop_front();
    small.push_back(&queue(client, kB));
    if (round % 20 == 0) {
      limits_.dispatched(*large.front(), now_);
      limits_.finished(*large.front());
      large.erase(large.begin());
      large.push_back(&queue(client, kA));
    }
    ASSERT_EQ(excess(), nullptr) << round;
  }
  // A reader whose requests are forwarded at once needs one.
  limits_.withdrawn(*small.front());
  show_quick(client);
  (void)queue(client, kA);
  Held* const refused = excess();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->app, kA);
}

TEST_F(ClientLimitsTest, OneThatWasQuickLongAgoHindersNoOther) {
  const ClientId client = client_with(12);
  show_quick(client);
  (void)hold(client, kA, 11);
  now_ += seconds(60);
  (void)queue(client, kB);
  EXPECT_EQ(excess(), nullptr);
}

TEST_F(ClientLimitsTest, WhatIsAtTheServerCountsButIsNeverSentBack) {
  const ClientId client = client_with(12);
  show_quick(client);
  std::vector<Held*> sent;
  for (int i = 0; i < 11; ++i) sent.push_back(&queue(client, kA));
  now_ += kWhile;
  for (Held* io : sent) limits_.dispatched(*io, now_);
  EXPECT_EQ(excess(), nullptr);
  Held& held = queue(client, kA);
  EXPECT_EQ(excess(), &held);
  for (int i = 0; i < 4; ++i) limits_.finished(*sent[static_cast<std::size_t>(i)]);
  (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
}

TEST_F(ClientLimitsTest, AClientWithOneApplicationHasNoLimit) {
  const ClientId client = client_with(12);
  (void)hold(client, kA, 12);
  EXPECT_EQ(excess(), nullptr);
  EXPECT_FALSE(limits_.report(client, now_).allowance);
  // The client has opened one more connection for it.
  (void)limits_.join("10.0.0.1 node 7");
  Held& first = queue(client, kB);
  EXPECT_EQ(excess(), nullptr) << "nothing is known about it yet";
  limits_.dispatched(first, now_);
  limits_.finished(first);
  (void)queue(client, kB);
  Held* const io = excess();
  ASSERT_NE(io, nullptr);
  EXPECT_EQ(io->app, kA);
}

TEST_F(ClientLimitsTest, AnApplicationThatIsQuietForLongIsNotThere) {
  const ClientId client = client_with(12);
  show_quick(client);
  now_ += seconds(61);
  (void)hold(client, kA, 12);
  EXPECT_EQ(excess(), nullptr);
}

TEST_F(ClientLimitsTest, ARepetitionIsAsOldAsWhatItRepeats) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  (void)queue(client, kB);
  for (int i = 0; i < 6; ++i) (void)queue(client, kA);
  now_ += seconds(1);
  Held& late = queue(client, kA);
  now_ += seconds(1);
  Held& later = queue(client, kA, 77);
  EXPECT_EQ(excess(), &later);
  now_ += seconds(5);
  limits_.withdrawn(late);
  Held& fresh = queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
  Held& again = queue(client, kA, 77);
  EXPECT_EQ(excess(), &fresh) << "which came after the one that comes again";
  EXPECT_EQ(again.first_seen, TimePoint{} + seconds(1002));
}

// Forty readers of one application return five seconds after each refusal. All are served, about in
// the order of arrival.
TEST_F(ClientLimitsTest, NoRequestIsSentBackForEver) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  struct Reader {
    TimePoint next;
    Held* held = nullptr;
    TimePoint since = {};
    std::uint64_t request = 0;
  };
  std::vector<Reader> readers(40);
  for (Reader& reader : readers) reader.next = now_;
  std::uint64_t request = 0;
  Duration longest = {};
  Held& other = queue(client, kB);
  for (int tick = 0; tick < 6000; ++tick, now_ += std::chrono::milliseconds(100)) {
    limits_.withdrawn(other);
    limits_.queued(other, now_);
    for (Reader& reader : readers) {
      if (reader.held != nullptr || now_ < reader.next) continue;
      if (reader.request == 0) {
        reader.request = ++request;
        reader.since = now_;
      }
      reader.held = &queue(client, kA, reader.request);
    }
    while (Held* const io = excess()) {
      for (Reader& reader : readers) {
        if (reader.held != io) continue;
        reader.held = nullptr;
        reader.next = now_ + seconds(5);
      }
    }
    if (tick % 5 != 0) continue;
    // Two requests a second are served, the oldest first.
    Reader* oldest = nullptr;
    for (Reader& reader : readers) {
      if (reader.held == nullptr) continue;
      if (oldest == nullptr || reader.since < oldest->since) oldest = &reader;
    }
    ASSERT_NE(oldest, nullptr);
    limits_.dispatched(*oldest->held, now_);
    limits_.finished(*oldest->held);
    longest = std::max(longest, now_ - oldest->since);
    *oldest = {.next = now_};
  }
  EXPECT_LT(longest, seconds(40)) << "forty that are served two a second, and five until a return";
}

TEST_F(ClientLimitsTest, AReadIsSentBackSoManyTimesOnly) {
  limits_.configure({.most = 1});
  const ClientId client = client_with(4);
  limits_.dispatched(queue(client, kA, 1), now_);
  for (std::uint32_t times = 0; times < ClientLimits::kMostTimes; ++times) {
    Held& again = queue(client, kA, 2);
    ASSERT_EQ(excess(), &again) << times;
    now_ += seconds(5);
  }
  (void)queue(client, kA, 2);
  EXPECT_EQ(excess(), nullptr) << "its client may give it up before long";
  Held& another = queue(client, kA, 3);
  EXPECT_EQ(excess(), &another);
}

TEST_F(ClientLimitsTest, AWriteThatComesAgainAtOnceStays) {
  limits_.configure({.most = 1});
  const ClientId client = client_with(4);
  const auto write = [&](std::uint64_t fingerprint) -> Held& {
    Held& io = queue(client, kA, fingerprint);
    io.kind = IoKind::write;
    return io;
  };
  limits_.dispatched(write(1), now_);
  for (int times = 0; times < 40; ++times) {
    Held& again = write(2);
    ASSERT_EQ(excess(), &again) << times;
    now_ += seconds(5);
  }
  ASSERT_EQ(excess(), nullptr);
  ASSERT_EQ(excess(), nullptr);
  Held& once = write(3);
  EXPECT_EQ(excess(), &once);
  now_ += std::chrono::milliseconds(2);
  (void)write(3);
  EXPECT_EQ(excess(), nullptr);
}

TEST_F(ClientLimitsTest, AConfiguredLimitHoldsAlwaysAndOffNever) {
  const ClientId client = client_with(12);
  limits_.configure({.most = 2});
  for (int i = 0; i < 3; ++i) (void)queue(client, kA);
  EXPECT_NE(excess(), nullptr);
  EXPECT_EQ(excess(), nullptr);
  limits_.configure({.enabled = false});
  for (int i = 0; i < 30; ++i) (void)queue(client, kA);
  (void)queue(client, kB);
  EXPECT_EQ(excess(), nullptr);
}

// Any number of them together leaves the same number of connections for others.
TEST_F(ClientLimitsTest, TheAllowanceIsDividedAmongThoseThatWait) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  for (const std::uint32_t applications : {2U, 3U, 4U, 8U}) {
    SCOPED_TRACE(applications);
    std::map<AppId, std::size_t> held;
    std::vector<Held*> here;
    for (int i = 0; i < 16; ++i) {
      for (std::uint32_t app = 1; app <= applications; ++app) {
        here.push_back(&queue(client, AppId{app}));
        while (Held* const io = excess()) std::erase(here, io);
        EXPECT_LE(here.size(), 8U);
      }
    }
    for (const Held* io : here) ++held[io->app];
    EXPECT_EQ(here.size(), 8U);
    for (std::uint32_t app = 1; app <= applications; ++app) {
      EXPECT_GE(held[AppId{app}], 8U / applications) << app;
    }
    for (Held* io : here) limits_.withdrawn(*io);
    now_ += seconds(61);
  }
}

TEST_F(ClientLimitsTest, TheNodesAllowanceMayBeConfigured) {
  limits_.configure({.most = 6});
  const ClientId client = client_with(64);
  for (int i = 0; i < 6; ++i) (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
  for (int i = 0; i < 3; ++i) {
    (void)queue(client, kB);
    Held* const io = excess();
    ASSERT_NE(io, nullptr);
    EXPECT_EQ(io->app, kA);
    EXPECT_EQ(excess(), nullptr);
  }
  Held& fourth = queue(client, kB);
  EXPECT_EQ(excess(), &fourth) << "three for each of them";
}

TEST_F(ClientLimitsTest, WhatNoOtherAsksForIsNotTaken) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  for (int i = 0; i < 6; ++i) (void)queue(client, kA);
  for (int i = 0; i < 2; ++i) (void)queue(client, kB);
  EXPECT_EQ(excess(), nullptr) << "eight together, though one of them has more than half";
}

TEST_F(ClientLimitsTest, WithMoreApplicationsThanTheAllowanceTheOldestRequestsStay) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  std::vector<Held*> ios;
  for (std::uint32_t app = 1; app <= 8; ++app) {
    ios.push_back(&queue(client, AppId{app}));
    now_ += seconds(1);
  }
  EXPECT_EQ(excess(), nullptr);
  const TimePoint came = now_;
  for (std::uint32_t app = 9; app <= 20; ++app) {
    Held& io = queue(client, AppId{app}, 500 + app);
    EXPECT_EQ(excess(), &io) << app;
    EXPECT_EQ(excess(), nullptr);
  }
  // The first retry finds its place taken by a younger request.
  limits_.dispatched(*ios[0], now_);
  limits_.finished(*ios[0]);
  now_ += seconds(5);
  Held& young = queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
  Held& again = queue(client, AppId{9}, 509);
  EXPECT_EQ(again.first_seen, came);
  EXPECT_EQ(excess(), &young);
  EXPECT_EQ(excess(), nullptr);
}

// The server is busy for a moment now and then. That is not a reason to send a fast application's
// request back for five seconds.
TEST_F(ClientLimitsTest, AnApplicationWhoseRequestsArePassedOnIsNotSentBackForOthers) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  const AppId quick{9};
  for (std::uint32_t app = 1; app <= 8; ++app) (void)queue(client, AppId{app});
  for (int round = 0; round < 1000; ++round, now_ += std::chrono::milliseconds(20)) {
    Held& io = queue(client, quick);
    // It counts as fast from its first forwarded request on.
    if (round > 0) {
      ASSERT_EQ(excess(), nullptr) << round;
    }
    now_ += std::chrono::milliseconds(round % 5);
    limits_.dispatched(io, now_);
    limits_.finished(io);
  }
  // An application that is no longer fast joins those that wait.
  Held& slow = queue(client, quick);
  EXPECT_EQ(excess(), nullptr);
  now_ += ClientLimits::kPassing;
  Held& next = queue(client, quick);
  EXPECT_EQ(excess(), &next);
  EXPECT_EQ(excess(), &slow);
}

TEST_F(ClientLimitsTest, QuickOnesDoNotTakeEveryConnectionEither) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  for (std::uint32_t app = 1; app <= 12; ++app) {
    Held& io = queue(client, AppId{app});
    limits_.dispatched(io, now_);
    limits_.finished(io);
  }
  for (std::uint32_t app = 1; app <= 11; ++app) (void)queue(client, AppId{app});
  EXPECT_EQ(excess(), nullptr) << "those may be passed on in a moment";
  (void)queue(client, AppId{12});
  int refused = 0;
  while (excess() != nullptr) ++refused;
  EXPECT_EQ(refused, 1) << "requests that wait for a connection are not seen here";
  now_ += ClientLimits::kPassing;
  (void)queue(client, AppId{12});
  while (excess() != nullptr) ++refused;
  EXPECT_EQ(refused, 5) << "eight stay";
}

TEST_F(ClientLimitsTest, TheWorkForARequestDoesNotGrowWithTheApplicationsThatAreKnown) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  std::uint32_t next = 1;
  while (next <= 8) (void)queue(client, AppId{next++});
  const auto work_per_request = [&](std::uint32_t requests) {
    const std::uint64_t before = limits_.looks();
    for (std::uint32_t i = 0; i < requests; ++i) {
      Held& io = queue(client, AppId{next++});
      bool stays = true;
      while (Held* const refused = excess()) stays = stays && refused != &io;
      if (stays) limits_.withdrawn(io);
    }
    return (limits_.looks() - before) / requests;
  };
  const std::uint64_t few = work_per_request(20);
  EXPECT_GT(few, 0U);
  EXPECT_LE(work_per_request(50'000), few + 4) << "a few for those that are gone";
}

TEST_F(ClientLimitsTest, ClientsThatComeChangeNothingForThoseThatWait) {
  limits_.configure({.most = 8});
  const ClientId client = client_with(12);
  std::vector<Held*> ios;
  for (int i = 0; i < 8; ++i) ios.push_back(&queue(client, AppId(static_cast<std::uint32_t>(i))));
  for (int i = 0; i < 2000; ++i) (void)limits_.join("another node " + std::to_string(i));
  Held& ninth = queue(client, kA);
  EXPECT_EQ(excess(), &ninth);
  for (Held* io : ios) limits_.dispatched(*io, now_);
  for (Held* io : ios) limits_.finished(*io);
  EXPECT_EQ(limits_.report(client, now_).allowance, 8U);
}

TEST_F(ClientLimitsTest, ClientsThatComeAndGoDoNotPileUp) {
  for (int i = 0; i < 5000; ++i) limits_.leave(limits_.join("node " + std::to_string(i)));
  EXPECT_LT(limits_.size(), 1100U);
  const ClientId again = limits_.join("node 4999");
  EXPECT_EQ(limits_.report(again, now_).connections, 1U);
  EXPECT_EQ(limits_.report(again, now_).name, "node 4999");
}

}  // namespace
}  // namespace vpfs::stage
