#include "proxy/status.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "proxy/dispatcher.h"
#include "test/proxy/counting_clock.h"

namespace vpfs::proxy {
namespace {

using nlohmann::ordered_json;

TEST(ProxyStatus, ItsOwnFieldsAreAroundThoseOfTheStage) {
  Config config;
  config.listen = "127.0.0.1:3334";
  const auto settings = std::make_shared<const WorkerSettings>(std::move(config));
  const CountingClock clock;
  SharedState shared(clock, net::Endpoint(asio::ip::address_v4::loopback(), 1));
  shared.counters.connections_open = 3;
  shared.counters.late_bytes = 7;
  shared.draining = true;
  Dispatcher dispatcher(
      settings, 1, [](std::size_t) {}, clock.now());
  control::SnapshotReader reader;
  const ordered_json status =
      ordered_json::parse(status_text(*settings, shared,
                                      {.reloads = {.tried = 2, .failed = 1, .last_error = "why"},
                                       .snapshot = reader.read(dispatcher, clock.now()),
                                       .coordinator = {{.address = "coord:7311"}}}));
  std::string keys;
  for (const auto& [key, value] : status.items()) keys += key + " ";
  EXPECT_EQ(keys,
            "pid listen upstream protocol policy hold_us draining bypass reloads connections depth "
            "queued outstanding virtual_pfs jobs_with_io rules virtual_pfs_refused coordinator "
            "counters ");
  EXPECT_EQ(status["listen"], "127.0.0.1:3334");
  EXPECT_EQ(status["upstream"], "127.0.0.1:1");
  EXPECT_EQ(status["draining"], true);
  EXPECT_EQ(status["reloads"], (ordered_json{{"tried", 2}, {"failed", 1}, {"last_error", "why"}}));
  EXPECT_EQ(status["connections"]["open"], 3);
  EXPECT_EQ(status["coordinator"]["address"], "coord:7311");
  EXPECT_EQ(status["counters"]["late_bytes"], 7);
}

TEST(ProxyStatus, AProxyOfRedirectedClientsSaysSo) {
  const auto settings = std::make_shared<const WorkerSettings>(Config());
  const CountingClock clock;
  SharedState shared(clock, std::nullopt);
  Dispatcher dispatcher(
      settings, 1, [](std::size_t) {}, clock.now());
  control::SnapshotReader reader;
  const auto status = ordered_json::parse(
      status_text(*settings, shared, {.snapshot = reader.read(dispatcher, clock.now())}));
  EXPECT_EQ(status["upstream"], "original");
  EXPECT_FALSE(status.contains("coordinator"));
}

}  // namespace
}  // namespace vpfs::proxy
