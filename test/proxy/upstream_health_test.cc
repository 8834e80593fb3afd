#include "proxy/upstream_health.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

namespace vpfs::proxy {
namespace {

using namespace std::chrono_literals;

class UpstreamHealthTest : public ::testing::Test {
 protected:
  UpstreamHealthTest() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
    auto logger = std::make_shared<spdlog::logger>("test", std::move(sink));
    logger->set_pattern("%l: %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~UpstreamHealthTest() override { spdlog::set_default_logger(before_); }

  // The log since the last call.
  std::string logged() {
    std::string text = log_.str();
    log_.str("");
    return text;
  }

  static net::Endpoint server(std::uint16_t port) {
    return {asio::ip::address_v4::loopback(), port};
  }

  std::shared_ptr<spdlog::logger> before_;  // the logger of other tests
  std::ostringstream log_;
  UpstreamHealth health_;
  TimePoint now_{1h};
};

TEST_F(UpstreamHealthTest, AnOutageIsALineWhenItBeginsAndOneWithACountWhenItEnds) {
  health_.reached(server(1), now_);
  EXPECT_EQ(logged(), "");
  for (int i = 0; i < 1000; ++i) health_.failed(server(1), "connect: refused", "c", now_ += 1ms);
  EXPECT_EQ(
      logged(),
      "warning: client c refused: data server: connect: refused; further refusals are counted "
      "until it answers\n");
  for (int i = 0; i < 10; ++i) health_.reached(server(1), now_ += 1ms);
  EXPECT_EQ(logged(),
            "info: data server 127.0.0.1:1 answers again; clients refused meanwhile: 1000\n");
}

TEST_F(UpstreamHealthTest, AServerThatIsNotThereAtTheStartIsToldWithoutAClient) {
  health_.failed(server(1), "connect: refused", "", now_);
  EXPECT_EQ(logged(),
            "warning: data server: connect: refused; clients are refused until it answers\n");
  health_.failed(server(1), "connect: refused", "c", now_);
  EXPECT_EQ(logged(), "");
  health_.reached(server(1), now_);
  EXPECT_EQ(logged(),
            "info: data server 127.0.0.1:1 answers again; clients refused meanwhile: 1\n");
}

TEST_F(UpstreamHealthTest, AServerThatComesAndGoesDoesNotFillTheLog) {
  for (int i = 0; i < 1000; ++i) {
    health_.failed(server(1), "connect: refused", "c", now_ += 1ms);
    health_.reached(server(1), now_ += 1ms);
  }
  const std::string text = logged();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  // Later it is logged again, with the clients that were only counted.
  health_.failed(server(1), "connect: refused", "c", now_ += 1min);
  (void)logged();
  health_.reached(server(1), now_);
  EXPECT_EQ(logged(),
            "info: data server 127.0.0.1:1 answers again; clients refused meanwhile: 1000\n");
}

TEST_F(UpstreamHealthTest, AnotherReasonIsToldAtOnce) {
  health_.failed(server(1), "connect: refused", "c", now_);
  health_.reached(server(1), now_);
  (void)logged();
  health_.failed(server(1), "connect: refused", "c", now_ += 1ms);
  EXPECT_EQ(logged(), "");
  health_.failed(server(1), "out of descriptors", "c", now_ += 1ms);
  EXPECT_EQ(
      logged(),
      "warning: client c refused: data server: out of descriptors; further refusals are counted "
      "until it answers\n");
}

TEST_F(UpstreamHealthTest, ServersAreToldApart) {
  health_.failed(server(1), "one", "c", now_);
  health_.failed(server(2), "two", "c", now_);
  (void)logged();
  health_.reached(server(2), now_);
  EXPECT_EQ(logged(),
            "info: data server 127.0.0.1:2 answers again; clients refused meanwhile: 1\n");
  health_.reached(server(2), now_);
  EXPECT_EQ(logged(), "");
}

TEST_F(UpstreamHealthTest, NoClientOfManyThreadsIsLostFromTheCount) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int n = 0; n < 1000; ++n) health_.failed(server(1), "gone", "c", now_);
    });
  }
  for (std::thread& each : threads) each.join();
  const std::string begun = logged();
  EXPECT_EQ(std::count(begun.begin(), begun.end(), '\n'), 1) << begun;
  health_.reached(server(1), now_);
  EXPECT_EQ(logged(),
            "info: data server 127.0.0.1:1 answers again; clients refused meanwhile: 4000\n");
}

}  // namespace
}  // namespace vpfs::proxy
