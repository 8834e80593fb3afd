#include "proxy/client_limits.h"

#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

using std::chrono::seconds;

constexpr AppId kA{1};
constexpr AppId kB{2};

class ClientLimitsTest : public ::testing::Test {
 protected:
  // A client with so many connections.
  ClientId client_with(std::size_t connections) {
    ClientId id{};
    for (std::size_t i = 0; i < connections; ++i) id = limits_.join("10.0.0.1 node 7");
    return id;
  }
  PendingIo& queue(ClientId client, AppId app, std::uint64_t fingerprint = 0) {
    ios_.push_back(std::make_unique<PendingIo>());
    PendingIo& io = *ios_.back();
    io.app = app;
    io.client = client;
    io.arrival = now_;
    io.order = ios_.size();
    io.fingerprint = fingerprint == 0 ? 1000 + ios_.size() : fingerprint;
    limits_.queued(io, now_);
    return io;
  }
  PendingIo* excess() { return limits_.take_excess(now_); }

  ClientLimits limits_;
  TimePoint now_ = TimePoint{} + seconds(1000);
  std::vector<std::unique_ptr<PendingIo>> ios_;
};

TEST_F(ClientLimitsTest, AThirdOfTheConnectionsIsLeftToOthers) {
  const ClientId client = client_with(12);
  (void)queue(client, kB);
  for (int i = 0; i < 8; ++i) (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
  EXPECT_EQ(limits_.report(client, now_).limit, 8U);
  PendingIo& ninth = queue(client, kA);
  EXPECT_EQ(excess(), &ninth);
  EXPECT_EQ(excess(), nullptr);
  EXPECT_EQ(limits_.report(client, now_).refused, 1U);
}

TEST_F(ClientLimitsTest, WhatIsAtTheServerCountsButIsNeverSentBack) {
  const ClientId client = client_with(12);
  (void)queue(client, kB);
  std::vector<PendingIo*> sent;
  for (int i = 0; i < 10; ++i) {
    sent.push_back(&queue(client, kA));
    limits_.dispatched(*sent.back());
  }
  EXPECT_EQ(excess(), nullptr);
  PendingIo& held = queue(client, kA);
  EXPECT_EQ(excess(), &held);
  for (int i = 0; i < 3; ++i) limits_.finished(*sent[static_cast<std::size_t>(i)]);
  (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
}

TEST_F(ClientLimitsTest, AClientWithOneApplicationHasNoLimit) {
  const ClientId client = client_with(12);
  for (int i = 0; i < 12; ++i) (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
  EXPECT_FALSE(limits_.report(client, now_).limit);
  (void)queue(client, kB);
  int refused = 0;
  while (PendingIo* const io = excess()) {
    EXPECT_EQ(io->app, kA);
    ++refused;
  }
  EXPECT_EQ(refused, 4);
}

TEST_F(ClientLimitsTest, AnApplicationThatIsQuietForLongIsNotThere) {
  const ClientId client = client_with(12);
  PendingIo& once = queue(client, kB);
  limits_.dispatched(once);
  limits_.finished(once);
  now_ += seconds(61);
  for (int i = 0; i < 12; ++i) (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
}

TEST_F(ClientLimitsTest, ARepetitionIsAsOldAsWhatItRepeats) {
  const ClientId client = client_with(12);
  (void)queue(client, kB);
  for (int i = 0; i < 7; ++i) (void)queue(client, kA);
  now_ += seconds(1);
  PendingIo& late = queue(client, kA);
  now_ += seconds(1);
  PendingIo& later = queue(client, kA, 77);
  EXPECT_EQ(excess(), &later);
  now_ += seconds(5);
  limits_.withdrawn(late);
  PendingIo& fresh = queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
  PendingIo& again = queue(client, kA, 77);
  EXPECT_EQ(excess(), &fresh) << "which came after the one that comes again";
  EXPECT_EQ(again.first_seen, TimePoint{} + seconds(1002));
}

// Forty readers of one application, each of which comes again five seconds after it was sent back:
// all of them are served, about in the order in which they came.
TEST_F(ClientLimitsTest, NobodyIsSentBackForEver) {
  const ClientId client = client_with(12);
  struct Reader {
    TimePoint next;
    PendingIo* held = nullptr;
    TimePoint since = {};
    std::uint64_t request = 0;
  };
  std::vector<Reader> readers(40);
  for (Reader& reader : readers) reader.next = now_;
  std::uint64_t request = 0;
  Duration longest = {};
  PendingIo& other = queue(client, kB);
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
    while (PendingIo* const io = excess()) {
      for (Reader& reader : readers) {
        if (reader.held != io) continue;
        reader.held = nullptr;
        reader.next = now_ + seconds(5);
      }
    }
    if (tick % 5 != 0) continue;
    // Two a second are served: the oldest that is there.
    Reader* oldest = nullptr;
    for (Reader& reader : readers) {
      if (reader.held == nullptr) continue;
      if (oldest == nullptr || reader.since < oldest->since) oldest = &reader;
    }
    ASSERT_NE(oldest, nullptr);
    limits_.dispatched(*oldest->held);
    limits_.finished(*oldest->held);
    longest = std::max(longest, now_ - oldest->since);
    *oldest = {.next = now_};
  }
  EXPECT_LT(longest, seconds(40)) << "forty that are served two a second, and five until a return";
}

TEST_F(ClientLimitsTest, AReadIsSentBackSoManyTimesOnly) {
  limits_.configure({.most = 1});
  const ClientId client = client_with(4);
  limits_.dispatched(queue(client, kA, 1));
  for (std::uint32_t times = 0; times < ClientLimits::kMostTimes; ++times) {
    PendingIo& again = queue(client, kA, 2);
    ASSERT_EQ(excess(), &again) << times;
    now_ += seconds(5);
  }
  (void)queue(client, kA, 2);
  EXPECT_EQ(excess(), nullptr) << "its client may give it up before long";
  PendingIo& another = queue(client, kA, 3);
  EXPECT_EQ(excess(), &another);
}

TEST_F(ClientLimitsTest, AWriteThatComesAgainAtOnceStays) {
  limits_.configure({.most = 1});
  const ClientId client = client_with(4);
  const auto write = [&](std::uint64_t fingerprint) -> PendingIo& {
    PendingIo& io = queue(client, kA, fingerprint);
    io.kind = IoKind::write;
    return io;
  };
  limits_.dispatched(write(1));
  for (int times = 0; times < 40; ++times) {
    PendingIo& again = write(2);
    ASSERT_EQ(excess(), &again) << times;
    now_ += seconds(5);
  }
  ASSERT_EQ(excess(), nullptr);
  ASSERT_EQ(excess(), nullptr);
  PendingIo& once = write(3);
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

TEST_F(ClientLimitsTest, ClientsThatComeAndGoDoNotPileUp) {
  for (int i = 0; i < 5000; ++i) limits_.leave(limits_.join("node " + std::to_string(i)));
  EXPECT_LT(limits_.size(), 1100U);
  const ClientId again = limits_.join("node 4999");
  EXPECT_EQ(limits_.report(again, now_).connections, 1U);
  EXPECT_EQ(limits_.report(again, now_).name, "node 4999");
}

}  // namespace
}  // namespace vpfs::proxy
