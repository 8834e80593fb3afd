// Many connections share a slow link. Their client is slower than client_min_rate, and costs
// nothing while no other request waits.

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "test/support/clock/by_clock.h"
#include "test/support/servers/beegfs_storage.h"
#include "test/support/servers/proxy_beegfs.h"

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr double kLink = 1.25e6;  // bytes per second: 10 Mb/s
constexpr std::size_t kConnections = 10;
constexpr std::size_t kWrite = std::size_t{512} << 10;
constexpr std::size_t kAnswer = 48;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A node whose connections send direct writes one after the other. All of them together send no
// faster than the link, in turn, a packet at a time.
class SlowNode {
 public:
  explicit SlowNode(const ProxyProcess& proxy) {
    for (std::size_t i = 0; i < kConnections; ++i) {
      WritingConnection& one = connections_.emplace_back();
      one.peer = proxy.connect();
      one.unsent = introduction(beegfs::NodeType::client, 7) + next_write();
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  // The longest time from the first byte of a write to its answer.
  [[nodiscard]] double longest_write() const { return longest_; }
  [[nodiscard]] bool lost_connection() const { return lost_; }

 private:
  struct WritingConnection {
    WirePeer peer;
    Buffer unsent;
    std::size_t sent = 0;
    std::size_t answered = 0;
    Clock::time_point begun = Clock::now();
  };

  static Buffer next_write() { return write_request(1001, kWrite) + Buffer(kWrite); }

  void run(const std::stop_token& stop) {
    constexpr std::size_t kPacket = 1448;
    double may_send = 0;
    Clock::time_point last = Clock::now();
    std::size_t turn = 0;
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(5ms);
      may_send = std::min(may_send + kLink * seconds_since(last), 64e3);  // a queue of 50 ms
      last = Clock::now();
      std::size_t idle = 0;
      while (may_send >= kPacket && idle < kConnections) {
        WritingConnection& one = connections_[turn++ % kConnections];
        receive(one);
        const std::size_t size = std::min(kPacket, one.unsent.size() - one.sent);
        const ssize_t sent = size == 0 ? 0
                                       : ::send(one.peer.socket(), one.unsent.data() + one.sent,
                                                size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent <= 0) {
          ++idle;
          continue;
        }
        idle = 0;
        one.sent += static_cast<std::size_t>(sent);
        may_send -= static_cast<double>(sent);
      }
    }
  }

  void receive(WritingConnection& one) {
    std::array<std::byte, kAnswer> bytes;
    const ssize_t got =
        ::recv(one.peer.socket(), bytes.data(), kAnswer - one.answered, MSG_DONTWAIT);
    if (got == 0) lost_ = true;
    if (got <= 0) return;
    one.answered += static_cast<std::size_t>(got);
    if (one.answered < kAnswer) return;
    longest_ = std::max(longest_.load(), seconds_since(one.begun));
    ++writes_;
    one.unsent = next_write();
    one.sent = one.answered = 0;
    one.begun = Clock::now();
  }

  std::vector<WritingConnection> connections_;
  std::atomic<std::uint64_t> writes_ = 0;
  std::atomic<double> longest_ = 0;
  std::atomic<bool> lost_ = false;
  std::jthread thread_;
};

// Another node, which has more small writes under way than the depth allows.
class Victim {
 public:
  Victim(const ProxyProcess& proxy, std::size_t connections) {
    for (std::size_t i = 0; i < connections; ++i) {
      threads_.emplace_back([this, &proxy](const std::stop_token& stop) {
        WirePeer peer = proxy.connect();
        (void)peer.send(introduction(beegfs::NodeType::client, 8));
        const Buffer write = write_request(1002, kSmall) + Buffer(kSmall);
        while (!stop.stop_requested()) {
          if (!peer.send(write) || peer.receive_bytes(kAnswer).size() != kAnswer) return;
          ++done_;
        }
      });
    }
  }
  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  std::atomic<std::uint64_t> done_ = 0;
  std::vector<std::jthread> threads_;
};

class SlowLinks : public ::testing::Test {
 protected:
  static constexpr unsigned kDepth = 8;
  // Each request takes 1 ms of four at a time.
  BeegfsStorage storage_{
      {.targets = {101},
       .device = DeviceSettings{.bandwidth = {400 << 20}, .per_request = 1ms, .parallelism = 4}}};
  // The settings are the defaults except the depth.
  ProxyProcess proxy_{
      {.upstream = storage_.port(),
       .protocol = "beegfs",
       .workers = 2,
       .depth = kDepth,
       .virtual_pfs = "a: {weight: 1}, b: {weight: 1}",
       .rules = "[{match: {uid: 1001}, virtual_pfs: a}, {match: {uid: 1002}, virtual_pfs: b}]"}};

  [[nodiscard]] double forwarded_per_second(Clock::duration time) {
    const std::uint64_t before = proxy_.status()["counters"]["bytes_to_server"];
    const auto begin = Clock::now();
    std::this_thread::sleep_for(time);
    const std::uint64_t after = proxy_.status()["counters"]["bytes_to_server"];
    return static_cast<double>(after - before) / seconds_since(begin);
  }
};

TEST_F(SlowLinks, ANodeAloneGetsItsLinkWhateverItsConnectionsDo) {
  const SlowNode node(proxy_);
  std::this_thread::sleep_for(3s);
  EXPECT_GE(forwarded_per_second(15s), 0.9 * kLink) << kByClock;
  EXPECT_FALSE(node.lost_connection());
  EXPECT_GE(node.writes(), 2 * kConnections);
  EXPECT_LE(node.longest_write(), 4 * kConnections * kWrite / kLink) << kByClock;
  const nlohmann::json status = proxy_.status();
  EXPECT_EQ(status["counters"]["slots_given_up"], 0) << "others did not wait";
  EXPECT_EQ(status["virtual_pfs"][1]["held_us"]["client"], 0);
}

TEST_F(SlowLinks, BesideAnotherApplicationTheNodeGoesOnAndTheOtherKeepsItsShare) {
  const auto rate_of = [](const Victim& victim, Clock::duration time) {
    const std::uint64_t before = victim.done();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(time);
    return static_cast<double>(victim.done() - before) / seconds_since(begin);
  };
  const Victim victim(proxy_, 2 * kDepth);
  std::this_thread::sleep_for(500ms);
  const double alone = rate_of(victim, 3s);
  const SlowNode node(proxy_);
  std::this_thread::sleep_for(4s);
  const double beside = rate_of(victim, 12s);
  EXPECT_GE(beside, 0.9 * alone / 2) << "its share is a half" << kByClock;
  EXPECT_FALSE(node.lost_connection());
  EXPECT_GE(node.writes(), kConnections);
  // No write is stopped: one at a time they take as long as all of them at once.
  EXPECT_LE(node.longest_write(), 4 * kConnections * kWrite / kLink) << kByClock;
  const nlohmann::json status = proxy_.status();
  EXPECT_GT(status["virtual_pfs"][1]["held_us"]["client"], 0);
  RecordProperty("alone", std::to_string(alone));
  std::printf("victim: alone %.0f/s, beside %.0f/s; node: %llu writes, longest %.1f s\n", alone,
              beside, static_cast<unsigned long long>(node.writes()), node.longest_write());
}

}  // namespace
}  // namespace vpfs::test
