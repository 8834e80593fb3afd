#include "control/metrics/http_port.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system_clock.h"
#include "test/control/metrics/example_stats.h"
#include "test/control/metrics/exposition.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A client with blocking calls.
class Client {
 public:
  explicit Client(const net::Endpoint& port, int receive_buffer = 0,
                  in_addr_t from = INADDR_LOOPBACK)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(from)}};
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    const sockaddr_in to = {.sin_family = AF_INET,
                            .sin_port = htons(port.port()),
                            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  Client(Client&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  Client& operator=(Client&&) = delete;
  ~Client() {
    if (socket_ >= 0) ::close(socket_);
  }

  [[nodiscard]] bool connected() const { return connected_; }
  bool send(std::string_view text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Whether there is something to receive, or an end, within the time.
  [[nodiscard]] bool readable(std::chrono::milliseconds patience) const {
    pollfd poll_for = {.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&poll_for, 1, static_cast<int>(patience.count())) == 1;
  }
  // Some of what has come; "" at the end of the connection.
  [[nodiscard]] std::string receive(std::size_t most) const {
    std::string text(most, '\0');
    const ssize_t size = readable(10s) ? ::recv(socket_, text.data(), text.size(), 0) : -1;
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }
  // Everything up to the end of the connection.
  [[nodiscard]] std::string receive_all() const {
    std::string text;
    char part[65536];
    while (readable(10s)) {
      const ssize_t size = ::recv(socket_, part, sizeof part, 0);
      if (size <= 0) return text;
      text.append(part, static_cast<std::size_t>(size));
    }
    ADD_FAILURE() << "the connection does not end";
    return text;
  }

 private:
  int socket_;
  bool connected_ = false;
};

class HttpPortTest : public ::testing::Test {
 protected:
  void start(HttpLimits limits = {}, std::size_t most_virtual_pfs = 1000) {
    HttpSource source = {.stats =
                             [this](auto answer) {
                               ++asked_;
                               const std::lock_guard lock(mutex_);
                               if (silent_) {
                                 kept_.push_back(std::move(answer));
                               } else {
                                 answer(stats_);
                               }
                             },
                         .not_ready =
                             [this] {
                               const std::lock_guard lock(mutex_);
                               return not_ready_;
                             },
                         .metrics = nullptr,
                         .ask =
                             [this](Envelope question, std::function<void(Envelope)> answer) {
                               const std::lock_guard lock(mutex_);
                               questions_.push_back(std::move(question));
                               std::this_thread::sleep_for(work_);
                               if (silent_) {
                                 answers_.push_back(std::move(answer));
                               } else {
                                 answer(reply_);
                               }
                             }};
    auto port = HttpPort::open({.address = "127.0.0.1:0", .most_virtual_pfs = most_virtual_pfs},
                               std::move(source), "1.2.3", clock_, limits);
    ASSERT_TRUE(port) << port.error().message;
    port_ = std::move(*port);
  }
  // The text does not fit into the sockets' buffers.
  void add_long_names() {
    for (int i = 0; i < 500; ++i) {
      VirtualPfs& made = *stats_.add_virtual_pfs();
      made.set_name("job-" + std::string(500, 'x') + std::to_string(i));
    }
  }
  [[nodiscard]] Client connect(int receive_buffer = 0) const {
    Client client(port_->local_endpoint(), receive_buffer);
    EXPECT_TRUE(client.connected());
    return client;
  }
  [[nodiscard]] std::string ask(const std::string& request) const {
    const Client client = connect();
    EXPECT_TRUE(client.send(request));
    return client.receive_all();
  }
  [[nodiscard]] std::string get(const std::string& path) const {
    return ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }

  const SystemClock clock_;
  std::mutex mutex_;
  StatsReply stats_ = test::example_stats();
  std::string not_ready_;
  bool silent_ = false;
  std::vector<std::function<void(StatsReply)>> kept_;   // answers that are still to be given
  std::vector<Envelope> questions_;                     // of the page
  std::chrono::milliseconds work_ = 0ms;                // that each of them takes
  Envelope reply_;                                      // to each of them
  std::vector<std::function<void(Envelope)>> answers_;  // that are still to be given
  std::atomic<int> asked_ = 0;
  std::unique_ptr<HttpPort> port_;
};

std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

std::size_t promised_by(const std::string& answer) {
  return std::stoul(answer.substr(answer.find("Content-Length: ") + 16));
}

TEST_F(HttpPortTest, ServesMetricsForPrometheus) {
  start();
  const std::string answer = get("/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  const test::Exposition found = test::read_exposition(body_of(answer));
  EXPECT_EQ(found.problems, std::vector<std::string>());
  EXPECT_EQ(found.value("vpfs_connections"), 21);
  EXPECT_EQ(found.value("vpfs_build_info", {{"version", "1.2.3"}, {"policy", "sfq"}}), 1);
}

TEST_F(HttpPortTest, ServesAPageThatMayLoadNothingFromElsewhere) {
  start();
  const std::string answer = get("/");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none';"));
  EXPECT_THAT(get("/page.js"), HasSubstr("Content-Type: text/javascript; charset=utf-8\r\n"));
}

TEST_F(HttpPortTest, ANameOfAStrangerLeadsNowhere) {
  start();
  for (const char* path : {"/", "/page.js", "/api/status"}) {
    EXPECT_THAT(ask(std::string("GET ") + path + " HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
                StartsWith("HTTP/1.1 403 Forbidden\r\n"));
    EXPECT_THAT(ask(std::string("GET ") + path + " HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  }
  EXPECT_TRUE(questions_.empty());
}

TEST_F(HttpPortTest, PassesQuestionsOfThePageOn) {
  reply_.mutable_status_reply()->set_json("{\"pid\": 7}");
  start();
  const std::string answer = get("/api/status");
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(body_of(answer), "{\"pid\": 7}\n");
  ASSERT_EQ(questions_.size(), 1U);
  EXPECT_TRUE(questions_[0].has_status());
  EXPECT_THAT(get("/api/past?back=x"), StartsWith("HTTP/1.1 400"));
  reply_.mutable_error()->set_text("not \"now\"");
  EXPECT_EQ(body_of(get("/api/rules")), "{\"error\":\"not \\\"now\\\"\"}\n");
}

TEST_F(HttpPortTest, QuestionsWithoutAnAnswerEndAndAreBounded) {
  silent_ = true;
  start({.stats_patience = 200ms, .questions = 2});
  std::vector<Client> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(connect());
    EXPECT_TRUE(clients.back().send("GET /api/past?back=" + std::to_string(i + 1) +
                                    " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  int refused = 0;
  int late = 0;
  for (const Client& client : clients) {
    const std::string answer = client.receive_all();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
    refused += answer.find("too many") != std::string::npos ? 1 : 0;
    late += answer.find("no answer in time") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(refused, 3) << "one is asked, and two wait";
  EXPECT_GE(late, 1);
  EXPECT_EQ(refused + late, 6);
  // Answers that come too late, or when the port is gone, harm nothing.
  const std::lock_guard lock(mutex_);
  ASSERT_FALSE(answers_.empty());
  answers_[0](reply_);
  EXPECT_THAT(get("/healthz"), StartsWith("HTTP/1.1 200"));
  port_.reset();
  answers_.back()(reply_);
}

TEST_F(HttpPortTest, QuestionsOfAMomentShareOneAnswer) {
  start();
  for (int i = 0; i < 20; ++i) EXPECT_THAT(get("/api/status"), StartsWith("HTTP/1.1 200"));
  EXPECT_LE(questions_.size(), 3U);
}

TEST_F(HttpPortTest, AFloodOfQuestionsTakesAPartOfTheThreadThatAnswers) {
  constexpr auto kWork = 20ms;
  work_ = kWork;
  start();
  const auto end = std::chrono::steady_clock::now() + 1s;
  for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
    (void)get("/api/past?back=" + std::to_string(i % 1000 + 1));
  }
  EXPECT_LE(questions_.size() * kWork, 400ms);
}

TEST_F(HttpPortTest, AProgramOtherThanAStageMakesTheTextOnTheThreadOfThePort) {
  std::thread::id made_by;
  HttpSource source;
  source.not_ready = [] { return std::string(); };
  source.metrics = [&](std::function<void(HttpSource::MakeText)> answer) {
    std::thread([&, answer = std::move(answer)] {
      answer([&] {
        made_by = std::this_thread::get_id();
        return std::string("mine 1\n");
      });
    }).join();
  };
  auto port = HttpPort::open({.address = "127.0.0.1:0"}, std::move(source), "1.2.3", clock_, {});
  ASSERT_TRUE(port) << port.error().message;
  port_ = std::move(*port);
  EXPECT_THAT(get("/metrics"), HasSubstr("\r\n\r\nmine 1\n"));
  port_.reset();
  EXPECT_NE(made_by, std::thread::id());
  EXPECT_NE(made_by, std::this_thread::get_id());
}

TEST_F(HttpPortTest, ShowsAsManyVirtualPfsesAsConfigured) {
  start({}, 1);
  const test::Exposition found = test::read_exposition(body_of(get("/metrics")));
  EXPECT_EQ(found.count("vpfs_read_bytes_total"), 1U);
}

TEST_F(HttpPortTest, HealthIsThatTheProcessAnswersAndReadinessHasAReason) {
  start();
  EXPECT_THAT(get("/healthz"), ::testing::EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(get("/readyz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  {
    const std::lock_guard lock(mutex_);
    not_ready_ = "draining";
  }
  EXPECT_THAT(get("/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::string answer = get("/readyz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_EQ(body_of(answer), "draining\n");
}

TEST_F(HttpPortTest, RefusesWhatItDoesNotServe) {
  start();
  EXPECT_THAT(get("/other"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get("/metrics/../etc/passwd"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nContent-Length: 9999999\r\n\r\nabc"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask("GET / HTTP/9.9\r\n\r\n"), StartsWith("HTTP/1.1 505 "));
  EXPECT_EQ(body_of(ask("HEAD /healthz HTTP/1.1\r\n\r\n")), "");
  EXPECT_EQ(asked_, 0) << "nothing of this asks the stage";
}

TEST_F(HttpPortTest, ManyScrapesAskTheStageOnceInAWhile) {
  start({.fresh = 10s});
  for (int i = 0; i < 50; ++i) EXPECT_THAT(get("/metrics"), HasSubstr("vpfs_connections 21"));
  EXPECT_EQ(asked_, 1);
}

TEST_F(HttpPortTest, ScrapeAfterAWhileHasNewNumbers) {
  start({.fresh = 1ms});
  EXPECT_THAT(get("/metrics"), HasSubstr("vpfs_connections 21"));
  {
    const std::lock_guard lock(mutex_);
    stats_.set_connections(22);
  }
  std::this_thread::sleep_for(5ms);
  EXPECT_THAT(get("/metrics"), HasSubstr("vpfs_connections 22"));
}

TEST_F(HttpPortTest, AnswerMayComeLaterFromAnotherThread) {
  silent_ = true;
  start({.stats_patience = 10s});
  const Client one = connect();
  const Client other = connect();
  ASSERT_TRUE(one.send("GET /metrics HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(other.send("GET /metrics HTTP/1.1\r\n\r\n"));
  while (asked_ == 0) std::this_thread::yield();
  EXPECT_THAT(get("/healthz"), HasSubstr("ok")) << "it does not wait for the stage";
  {
    const std::lock_guard lock(mutex_);
    kept_.at(0)(stats_);
  }
  EXPECT_THAT(one.receive_all(), HasSubstr("vpfs_connections 21"));
  EXPECT_THAT(other.receive_all(), HasSubstr("vpfs_connections 21"));
  EXPECT_EQ(asked_, 1);
}

TEST_F(HttpPortTest, StageThatDoesNotAnswerIsAskedAgain) {
  silent_ = true;
  start({.stats_patience = 20ms});
  EXPECT_THAT(get("/metrics"), StartsWith("HTTP/1.1 503 "));
  {
    const std::lock_guard lock(mutex_);
    silent_ = false;
  }
  EXPECT_THAT(get("/metrics"), HasSubstr("vpfs_connections 21"));
}

TEST_F(HttpPortTest, AnswerAfterTheEndOfThePortHarmsNothing) {
  silent_ = true;
  start();
  const Client client = connect();
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  while (asked_ == 0) std::this_thread::yield();
  port_.reset();
  kept_.at(0)(stats_);
}

TEST_F(HttpPortTest, SlowRequestEndsAtItsDeadlineAndHoldsUpNoOther) {
  start({.patience = 300ms});
  std::vector<Client> slow;
  for (int i = 0; i < 10; ++i) slow.push_back(connect());
  const auto begin = std::chrono::steady_clock::now();
  std::size_t sent = 0;
  const std::string request = "GET /healthz HTTP/1.1\r\n" + std::string(1000, 'A');
  while (sent < request.size()) {
    bool open = false;
    for (const Client& each : slow)
      open |= each.send(request.substr(sent, 1)) && !each.readable(0ms);
    ++sent;
    if (!open) break;
    std::this_thread::sleep_for(5ms);
    if (sent % 10 == 0) EXPECT_THAT(get("/healthz"), HasSubstr("ok"));
  }
  EXPECT_LT(sent, request.size()) << "they were closed";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  for (const Client& each : slow) EXPECT_EQ(each.receive_all(), "");
}

TEST_F(HttpPortTest, SilentConnectionsMakeRoomForOthers) {
  start({.connections = 16, .patience = 1h});
  std::vector<Client> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(connect());
  EXPECT_THAT(get("/healthz"), HasSubstr("ok"));
  int closed = 0;
  for (const Client& each : silent) closed += each.readable(0ms) ? 1 : 0;
  EXPECT_GE(closed, 184);
  EXPECT_FALSE(silent.back().readable(0ms)) << "the oldest one goes first";
}

TEST_F(HttpPortTest, TwoHundredScrapesAtOnceAreServed) {
  start({.connections = 256});
  std::vector<Client> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(connect());
  for (const Client& each : clients) ASSERT_TRUE(each.send("GET /metrics HTTP/1.1\r\n\r\n"));
  for (const Client& each : clients) {
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
    const Client client = connect();
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
  std::vector<Client> asked;
  for (int i = 0; i < 7; ++i) {
    asked.emplace_back(port_->local_endpoint(), 0, kOther);
    ASSERT_TRUE(asked.back().send("GET /metrics HTTP/1.1\r\n\r\n"));
  }
  while (asked_ == 0) std::this_thread::yield();
  const Client victim = connect();
  std::vector<Client> more;
  for (int i = 0; i < 20; ++i) more.emplace_back(port_->local_endpoint(), 0, kOther);
  ASSERT_TRUE(more.front().readable(10s)) << "room is made";
  EXPECT_FALSE(victim.readable(0ms));
  ASSERT_TRUE(victim.send("GET /healthz HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(victim.receive_all(), HasSubstr("ok"));
}

TEST_F(HttpPortTest, ClientThatReadsSlowlyGetsAllOfIt) {
  add_long_names();
  start({.patience = 500ms}, 10'000);
  const Client client = connect(4096);
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
  const Client client = connect(4096);
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
  const Client client = connect(4096);
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(get("/healthz"), HasSubstr("ok"));
  std::this_thread::sleep_for(3500ms);
  const std::string answer = client.receive_all();
  EXPECT_LT(body_of(answer).size(), promised_by(answer));
}

TEST_F(HttpPortTest, EndsAtOnceWhateverClientsDo) {
  silent_ = true;
  start({.patience = 1h, .stats_patience = 1h});
  const Client quiet = connect();
  const Client half = connect();
  ASSERT_TRUE(half.send("GET /met"));
  const Client waiting = connect();
  ASSERT_TRUE(waiting.send("GET /metrics HTTP/1.1\r\n\r\n"));
  while (asked_ == 0) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  port_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(quiet.receive_all(), "");
}

TEST_F(HttpPortTest, ErrorsOfTheAddressNameTheKey) {
  start();
  const std::string taken = net::to_string(port_->local_endpoint());
  EXPECT_THAT(HttpPort::open({.address = taken}, {}, "", clock_).error().message,
              AllOf(StartsWith("control.http: "), HasSubstr("Address already in use")));
  EXPECT_THAT(HttpPort::open({.address = "0.0.0.0:0"}, {}, "", clock_).error().message,
              StartsWith("control.http: '0.0.0.0:0' is not a loopback address"));
}

}  // namespace
}  // namespace vpfs::control
