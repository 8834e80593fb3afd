#include "control/metrics/http_port.h"

#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/metrics/exposition.h"
#include "test/control/metrics/http_rig.h"

namespace vpfs::control {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
  std::vector<BlockingClient> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(connect());
    EXPECT_TRUE(clients.back().send("GET /api/past?back=" + std::to_string(i + 1) +
                                    " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  int refused = 0;
  int late = 0;
  for (const BlockingClient& client : clients) {
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
  const BlockingClient one = connect();
  const BlockingClient other = connect();
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
  const BlockingClient client = connect();
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  while (asked_ == 0) std::this_thread::yield();
  port_.reset();
  kept_.at(0)(stats_);
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
