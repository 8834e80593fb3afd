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

  ClientLimits limits_;
  TimePoint now_ = TimePoint{} + seconds(1000);
  std::vector<std::unique_ptr<Held>> ios_;
};

TEST_F(ClientLimitsTest, AThirdOfTheConnectionsIsLeftToOthers) {
  const ClientId client = client_with(12);
  (void)queue(client, kB);
  for (int i = 0; i < 7; ++i) (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
  EXPECT_EQ(limits_.report(client, now_).allowance, 8U);
  Held& ninth = queue(client, kA);
  EXPECT_EQ(excess(), &ninth);
  EXPECT_EQ(excess(), nullptr);
  EXPECT_EQ(limits_.report(client, now_).refused, 1U);
}

TEST_F(ClientLimitsTest, WhatIsAtTheServerCountsButIsNeverSentBack) {
  const ClientId client = client_with(12);
  (void)queue(client, kB);
  std::vector<Held*> sent;
  for (int i = 0; i < 10; ++i) {
    sent.push_back(&queue(client, kA));
    limits_.dispatched(*sent.back(), now_);
  }
  EXPECT_EQ(excess(), nullptr);
  Held& held = queue(client, kA);
  EXPECT_EQ(excess(), &held);
  for (int i = 0; i < 4; ++i) limits_.finished(*sent[static_cast<std::size_t>(i)]);
  (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
}

TEST_F(ClientLimitsTest, AClientWithOneApplicationHasNoLimit) {
  const ClientId client = client_with(12);
  for (int i = 0; i < 12; ++i) (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
  EXPECT_FALSE(limits_.report(client, now_).allowance);
  (void)queue(client, kB);
  int refused = 0;
  while (Held* const io = excess()) {
    EXPECT_EQ(io->app, kA);
    ++refused;
  }
  EXPECT_EQ(refused, 5);
}

TEST_F(ClientLimitsTest, AnApplicationThatIsQuietForLongIsNotThere) {
  const ClientId client = client_with(12);
  Held& once = queue(client, kB);
  limits_.dispatched(once, now_);
  limits_.finished(once);
  now_ += seconds(61);
  for (int i = 0; i < 12; ++i) (void)queue(client, kA);
  EXPECT_EQ(excess(), nullptr);
}

TEST_F(ClientLimitsTest, ARepetitionIsAsOldAsWhatItRepeats) {
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
TEST_F(ClientLimitsTest, NobodyIsSentBackForEver) {
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

TEST_F(ClientLimitsTest, WhatNobodyElseAsksForIsNotTakenFromAnybody) {
  const ClientId client = client_with(12);
  for (int i = 0; i < 6; ++i) (void)queue(client, kA);
  for (int i = 0; i < 2; ++i) (void)queue(client, kB);
  EXPECT_EQ(excess(), nullptr) << "eight together, though one of them has more than half";
}

TEST_F(ClientLimitsTest, OfMoreApplicationsThanTheAllowanceTheOldestRequestsStay) {
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

// The server is busy for a moment now and then. That is no reason to send a fast application's
// request back for five seconds.
TEST_F(ClientLimitsTest, AnApplicationWhoseRequestsArePassedOnIsNotSentBackForOthers) {
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
  EXPECT_EQ(refused, 1) << "who waits for a connection is not seen here";
  now_ += ClientLimits::kPassing;
  (void)queue(client, AppId{12});
  while (excess() != nullptr) ++refused;
  EXPECT_EQ(refused, 5) << "eight stay";
}

// A node with applications of 16 readers or writers each, whose requests are forwarded now and
// then, and one reader whose requests are forwarded at once. All wait in one line for a free
// connection, and refused requests return as with a real client.
class NodeWithSlowApplications {
 public:
  static constexpr int kTasks = 16;

  NodeWithSlowApplications(ClientLimits& limits, std::size_t connections, std::size_t count,
                           IoKind kind)
      : limits_(limits), connections_(connections), kind_(kind), served_(count) {
    for (std::size_t i = 0; i < connections; ++i) client_ = limits.join("a node");
    for (int i = 0; i < kTasks; ++i) {
      for (std::size_t app = 0; app < count; ++app) tasks_.push_back({.app = AppId(app)});
    }
    tasks_.push_back({.app = AppId(count)});
    for (Task& task : tasks_) line_.push_back(&task);
  }
  void ask(TimePoint now) {
    for (Task& task : tasks_) {
      if (!task.awake || now < *task.awake) continue;
      task.awake.reset();
      line_.push_back(&task);
    }
    while (!line_.empty() && held_ < connections_) {
      Task& task = *line_.front();
      line_.pop_front();
      ask(task, now);
    }
  }
  // The oldest request of each application is forwarded.
  void serve(TimePoint now) {
    for (std::size_t app = 0; app < served_.size(); ++app) {
      Task* oldest = nullptr;
      for (Task& task : tasks_) {
        if (!task.held || task.app != AppId(app)) continue;
        if (oldest == nullptr || task.io.order < oldest->io.order) oldest = &task;
      }
      if (oldest == nullptr) continue;
      ++served_[app];
      pass_on(*oldest, now);
    }
  }
  [[nodiscard]] std::size_t least_served() const { return std::ranges::min(served_); }
  [[nodiscard]] std::size_t quick_served() const { return quick_served_; }

 private:
  struct Task {
    AppId app = {};
    std::optional<TimePoint> awake = {};
    bool held = false;
    bool again = false;  // it has been sent back
    Held io = {};
  };
  void ask(Task& task, TimePoint now) {
    if (!task.again) task.io = {};
    const bool is_quick = static_cast<std::size_t>(task.app) == served_.size();
    task.io.app = task.app;
    task.io.client = client_;
    task.io.kind = is_quick ? IoKind::read : kind_;
    task.io.arrival = now;
    task.io.order = ++requests_;
    if (task.io.fingerprint == 0) task.io.fingerprint = requests_;
    task.held = true;
    ++held_;
    limits_.queued(task.io, now);
    if (is_quick) {
      ++quick_served_;
      pass_on(task, now);
      task.awake = now + std::chrono::milliseconds(1);
    }
    while (Held* const io = limits_.take_excess(now)) send_back(*io, now);
  }
  void pass_on(Task& task, TimePoint now) {
    limits_.dispatched(task.io, now);
    limits_.finished(task.io);
    --held_;
    task = {.app = task.app, .awake = now};
  }
  void send_back(const Held& io, TimePoint now) {
    Task& task = *std::ranges::find(tasks_, &io, [](const Task& each) { return &each.io; });
    task.held = false;
    --held_;
    const bool at_once = io.kind == IoKind::read && !task.again;
    task.again = true;
    task.awake = now + (at_once ? Duration::zero() : seconds(5));
  }

  ClientLimits& limits_;
  const std::size_t connections_;
  const IoKind kind_;
  ClientId client_ = {};
  std::deque<Task> tasks_;
  std::deque<Task*> line_;
  std::vector<std::size_t> served_;
  std::uint64_t requests_ = 0;
  std::size_t held_ = 0;
  std::size_t quick_served_ = 0;
};

TEST(ClientLimits, OthersFindAConnectionBesideAnyNumberOfSlowApplications) {
  for (const IoKind kind : {IoKind::read, IoKind::write}) {
    for (const std::size_t connections : {12U, 64U}) {
      for (const std::size_t count : {1U, 2U, 4U, 8U, 20U}) {
        SCOPED_TRACE(::testing::Message() << connections << " connections, " << count);
        ClientLimits limits;
        NodeWithSlowApplications node(limits, connections, count, kind);
        TimePoint now = TimePoint{} + seconds(1000);
        constexpr int kTicks = 50'000;  // milliseconds
        for (int tick = 0; tick < kTicks; ++tick, now += std::chrono::milliseconds(1)) {
          node.ask(now);
          if (tick % 100 == 0) node.serve(now);
        }
        RecordProperty("quick", static_cast<int>(node.quick_served()));
        EXPECT_GE(node.quick_served(), kTicks * 0.9);
        const std::size_t allowance = connections * 2 / 3;
        EXPECT_GE(node.least_served(), count <= allowance ? 450 : 450 * allowance / count);
      }
    }
  }
}

TEST_F(ClientLimitsTest, TheWorkForARequestDoesNotGrowWithTheApplicationsThatAreKnown) {
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
