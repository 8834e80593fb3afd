#include "sim/proxies/server/proxied_server.h"

#include <deque>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

using namespace std::chrono_literals;

class ProxiedServerTest : public testing::Test {
 protected:
  void make(const stage::Config& config, DeviceSettings device) {
    config_ = config;
    ProxiedServer::Callbacks callbacks{.done = [this](ProxiedServer::Request& request) {
      done_.push_back(request.id);
      done_at_.push_back(engine_.now() - TimePoint());
    }};
    server_.emplace(engine_, config_, ProxiedServer::Settings{.device = device, .piece = {100}},
                    std::move(callbacks));
  }
  void arrive(std::uint64_t id, const std::string& virtual_pfs, std::uint64_t size) {
    ProxiedServer::Request& request = requests_.emplace_back();
    stage::Classifier::Match match;
    match.virtual_pfs = match.declared_name = virtual_pfs;
    match.rule = virtual_pfs == "default" ? stage::Classifier::kNoRule : 0;
    request.set_place(server_->stage().find(match, engine_.now(), config_.rules));
    request.id = id;
    request.size = request.asked = {size};
    request.cost = size;
    server_->arrive(request);
  }
  void run() {
    while (engine_.step()) {
    }
  }

  Engine engine_;
  stage::Config config_;
  std::optional<ProxiedServer> server_;
  std::deque<ProxiedServer::Request> requests_;
  std::vector<std::uint64_t> done_;
  std::vector<Duration> done_at_;
};

stage::Config with_policy(const std::string& policy, std::uint32_t depth) {
  stage::Config config;
  config.policy = policy;
  config.scheduler.depth.requests = depth;
  config.virtual_pfs = {{.name = "default", .share = {}}};
  return config;
}

TEST_F(ProxiedServerTest, AnIdleServerTakesTheTimeOfItsDevice) {
  make(with_policy("fifo", 1), {.bandwidth = {1'000'000}, .per_request = 5ms, .parallelism = 1});
  arrive(1, "default", 1000);  // in ten pieces
  run();
  EXPECT_EQ(done_at_, (std::vector<Duration>{6ms}));
  EXPECT_EQ(requests_[0].held, Duration::zero());
}

TEST_F(ProxiedServerTest, WhatTheDepthDoesNotAdmitIsHeld) {
  make(with_policy("fifo", 1), {.bandwidth = {1'000'000}, .per_request = 5ms, .parallelism = 4});
  for (std::uint64_t id = 1; id <= 3; ++id) arrive(id, "default", 1000);
  run();
  EXPECT_EQ(done_, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(done_at_, (std::vector<Duration>{6ms, 12ms, 18ms}));
  EXPECT_EQ(requests_[2].held, 12ms);
  EXPECT_EQ(server_->stage().outstanding(), 0U);
}

TEST_F(ProxiedServerTest, RequestsAtTheDeviceTakeTurnsPieceByPiece) {
  make(with_policy("fifo", 2), {.bandwidth = {1'000'000}, .per_request = 0ns, .parallelism = 2});
  arrive(1, "default", 1000);
  arrive(2, "default", 100);
  run();
  EXPECT_EQ(done_, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(done_at_, (std::vector<Duration>{200us, 1100us}));
}

TEST_F(ProxiedServerTest, ALimitHoldsWithoutAnythingElseHappening) {
  stage::Config config = with_policy("tbf", 8);
  config.virtual_pfs[0].share.rate = {1000};
  config.virtual_pfs[0].share.burst = {1000};
  make(config, {.bandwidth = {1'000'000'000}, .per_request = 0ns, .parallelism = 8});
  for (std::uint64_t id = 1; id <= 4; ++id) arrive(id, "default", 1000);
  run();
  ASSERT_EQ(done_.size(), 4U);
  EXPECT_GE(done_at_.back(), 3s);
  EXPECT_LT(done_at_.back(), 3s + 10ms);
}

}  // namespace
}  // namespace vpfs::sim
