// Clients of an HTTP port that are slow, many, or send nonsense.
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/metrics/http_rig.h"

namespace vpfs::control {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(HttpPortTest, SlowRequestEndsAtItsDeadlineAndHoldsUpNoOther) {
  start({.patience = 300ms});
  std::vector<BlockingClient> slow;
  for (int i = 0; i < 10; ++i) slow.push_back(connect());
  const auto begin = std::chrono::steady_clock::now();
  std::size_t sent = 0;
  const std::string request = "GET /healthz HTTP/1.1\r\n" + std::string(1000, 'A');
  while (sent < request.size()) {
    bool open = false;
    for (const BlockingClient& each : slow)
      open |= each.send(request.substr(sent, 1)) && !each.readable(0ms);
    ++sent;
    if (!open) break;
    std::this_thread::sleep_for(5ms);
    if (sent % 10 == 0) EXPECT_THAT(get("/healthz"), HasSubstr("ok"));
  }
  EXPECT_LT(sent, request.size()) << "they were closed";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  for (const BlockingClient& each : slow) EXPECT_EQ(each.receive_all(), "");
}

TEST_F(HttpPortTest, SilentConnectionsMakeRoomForOthers) {
  start({.connections = 16, .patience = 1h});
  std::vector<BlockingClient> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(connect());
  EXPECT_THAT(get("/healthz"), HasSubstr("ok"));
  int closed = 0;
  for (const BlockingClient& each : silent) closed += each.readable(0ms) ? 1 : 0;
  EXPECT_GE(closed, 184);
  EXPECT_FALSE(silent.back().readable(0ms)) << "the oldest one goes first";
}

TEST_F(HttpPortTest, TwoHundredScrapesAtOnceAreServed) {
  start({.connections = 256});
  std::vector<BlockingClient> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(connect());
  for (const BlockingClient& each : clients)
    ASSERT_TRUE(each.send("GET /metrics HTTP/1.1\r\n\r\n"));
  for (const BlockingClient& each : clients) {
    EXPECT_THAT(each.receive_all(), HasSubstr("vpfs_connections 21"));
  }
}

TEST_F(HttpPortTest, EndlessRequestIsRefused) {
  start();
  const std::string answer =
      ask("GET /metrics HTTP/1.1\r\nX: " + std::string(HttpLimits().head, 'a'));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpPortTest, GarbageIsRefusedAtOnce) {
  start({.patience = 1h});
  EXPECT_THAT(ask(std::string("\x16\x03\x01\x00\xa5", 5)), StartsWith("HTTP/1.1 400 "));
  std::mt19937_64 engine(3);
  for (int i = 0; i < 100; ++i) {
    std::string bytes(1 + engine() % 4000, '\0');
    for (char& each : bytes) each = static_cast<char>(engine());
    const BlockingClient client = connect();
    (void)client.send(bytes + "\n\n");
    (void)client.receive_all();
  }
  EXPECT_THAT(get("/healthz"), HasSubstr("ok"));
}

// One address cannot have the connections of another one closed, whatever it has asked.
TEST_F(HttpPortTest, AnAddressMakesRoomForItselfWithItsOwnConnections) {
  silent_ = true;
  start({.connections = 8, .patience = 1h, .stats_patience = 1h});
  constexpr in_addr_t kOther = INADDR_LOOPBACK + 1;
  std::vector<BlockingClient> asked;
  for (int i = 0; i < 7; ++i) {
    asked.emplace_back(port_->local_endpoint(), 0, kOther);
    ASSERT_TRUE(asked.back().send("GET /metrics HTTP/1.1\r\n\r\n"));
  }
  while (asked_ == 0) std::this_thread::yield();
  const BlockingClient victim = connect();
  std::vector<BlockingClient> more;
  for (int i = 0; i < 20; ++i) more.emplace_back(port_->local_endpoint(), 0, kOther);
  ASSERT_TRUE(more.front().readable(10s)) << "room is made";
  EXPECT_FALSE(victim.readable(0ms));
  ASSERT_TRUE(victim.send("GET /healthz HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(victim.receive_all(), HasSubstr("ok"));
}

TEST_F(HttpPortTest, ClientThatReadsSlowlyGetsAllOfIt) {
  add_long_names();
  start({.patience = 500ms}, 10'000);
  const BlockingClient client = connect(4096);
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  std::string answer = client.receive(1024);  // once it is made
  const auto begin = std::chrono::steady_clock::now();
  for (std::string part = client.receive(16384); !part.empty(); part = client.receive(16384)) {
    answer += part;
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 500ms);
  EXPECT_EQ(body_of(answer).size(), promised_by(answer));
}

TEST_F(HttpPortTest, AnAnswerThatTakesTooLongInAllIsEnded) {
  add_long_names();
  start({.patience = 1h, .sending = 300ms}, 10'000);
  const BlockingClient client = connect(4096);
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  std::string answer = client.receive(1024);  // once it is made
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < 1s) {
    answer += client.receive(1024);
    std::this_thread::sleep_for(10ms);
  }
  answer += client.receive_all();
  EXPECT_LT(body_of(answer).size(), promised_by(answer));
}

TEST_F(HttpPortTest, ClientThatDoesNotReadIsClosedAtItsDeadline) {
  add_long_names();
  start({.patience = 3s}, 10'000);
  const BlockingClient client = connect(4096);
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(get("/healthz"), HasSubstr("ok"));
  std::this_thread::sleep_for(3500ms);
  const std::string answer = client.receive_all();
  EXPECT_LT(body_of(answer).size(), promised_by(answer));
}

TEST_F(HttpPortTest, EndsAtOnceWhateverClientsDo) {
  silent_ = true;
  start({.patience = 1h, .stats_patience = 1h});
  const BlockingClient quiet = connect();
  const BlockingClient half = connect();
  ASSERT_TRUE(half.send("GET /met"));
  const BlockingClient waiting = connect();
  ASSERT_TRUE(waiting.send("GET /metrics HTTP/1.1\r\n\r\n"));
  while (asked_ == 0) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  port_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(quiet.receive_all(), "");
}

}  // namespace
}  // namespace vpfs::control
