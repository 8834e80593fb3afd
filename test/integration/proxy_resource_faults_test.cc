// vpfs-proxy when connections, descriptors or disk space run out.

#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "base/units.h"
#include "test/integration/small_read.h"
#include "test/support/io_messages.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

TEST(ProxyResourceFaults, ThousandSilentConnectionsCostLittleAndLeaveNothing) {
  constexpr std::size_t kCount = 1000;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink busy = open_link(proxy, server);
  expect_works(busy, 1);
  const std::size_t files = proxy.open_files();
  const std::size_t memory = proxy.own_memory();
  std::vector<ProxiedLink> silent;
  for (std::size_t i = 0; i < kCount; ++i) silent.push_back(open_link(proxy, server));
  ASSERT_TRUE(proxy.wait_until(
      [](const nlohmann::json& now) { return now["connections"]["open"] == kCount + 1; }));
  expect_works(busy, 2);
  EXPECT_EQ(proxy.open_files(), files + 2 * kCount);
  const std::size_t full = proxy.own_memory();
  if (!programs_have_sanitizer()) EXPECT_LT(full - memory, 32 * kMiB);
  RecordProperty("kib_of_a_thousand", std::to_string((full - memory) / 1024));
  silent.clear();
  ASSERT_TRUE(
      proxy.wait_until([](const nlohmann::json& now) { return now["connections"]["open"] == 1; }));
  expect_works(busy, 3);
  EXPECT_EQ(proxy.open_files(), files);

  // The second thousand reuses the memory of the first.
  for (std::size_t i = 0; i < kCount; ++i) silent.push_back(open_link(proxy, server));
  ASSERT_TRUE(proxy.wait_until(
      [](const nlohmann::json& now) { return now["connections"]["open"] == kCount + 1; }));
  if (!programs_have_sanitizer()) EXPECT_LT(proxy.own_memory(), full + 4 * kMiB);
}

TEST(ProxyResourceFaults, ConnectionsOverTheLimitAreClosedAtOnceWithOneLine) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .limits = "connections: 2"});
  ProxiedLink one = open_link(proxy, server);
  ProxiedLink two = open_link(proxy, server);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(proxy.connect().closed_by_peer());
  expect_works(one, 1);
  EXPECT_EQ(proxy.status()["connections"]["refused"], 5);
  EXPECT_EQ(proxy.lines_with("limits.connections (2) reached"), 1U);
  two.client.close();
  ASSERT_TRUE(
      proxy.wait_until([](const nlohmann::json& now) { return now["connections"]["open"] == 1; }));
  two = open_link(proxy, server);
  expect_works(two, 1);
}

// Returns a new connection whose request (tag 1) was answered. Connections that other clients left
// in the backlogs come first: they end, but may use up the descriptors once more.
std::optional<ProxiedLink> first_link_that_is_served(const ProxyProcess& proxy,
                                                     FakeDataServer& server) {
  const Buffer request = small_read_request(1, {.size = 4096});
  const Buffer response = small_read_response(1, Buffer(4096));
  for (int attempt = 0; attempt < 50; ++attempt) {
    ProxiedLink link = {.client = proxy.connect(), .server = {}};
    (void)link.client.send(request);
    for (link.server = server.accept(200ms); link.server.socket() >= 0;
         link.server = server.accept(200ms)) {
      const auto received = link.server.receive();
      if (!received || received->bytes() != request || !link.server.send(response)) continue;
      const auto answer = link.client.receive();
      if (answer && answer->bytes() == response) return link;
    }
  }
  return std::nullopt;
}

TEST(ProxyResourceFaults, OutOfDescriptorsRefusesNewConnectionsOnly) {
  const ReservedPort port;
  ProxyProcess proxy({.upstream = port.number(), .open_files = 64});
  // This line is logged while descriptors are left: UBSan needs some when it first sees the types
  // in it.
  EXPECT_TRUE(proxy.connect().closed_by_peer());
  EXPECT_TRUE(proxy.logs("data server: connect to "));
  FakeDataServer server(port.number());
  ProxiedLink busy = open_link(proxy, server);
  expect_works(busy, 1);
  const std::size_t files = proxy.open_files();
  std::vector<WirePeer> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(proxy.connect());
  // For some, no descriptor is left for the client or for the upstream connection.
  const auto refused = first_readable(clients, kPatience);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(clients[*refused].closed_by_peer());
  EXPECT_TRUE(proxy.logs("Too many open files") || proxy.logs("out of file descriptors"));
  expect_works(busy, 2);

  // Large messages are copied, since there is no pipe to splice them through.
  constexpr std::size_t kSize = 1U << 20;
  const StampedFile file = {.file = 5};
  ASSERT_TRUE(busy.client.send(io_request(3, {.size = kSize})));
  ASSERT_TRUE(busy.server.receive());
  ASSERT_TRUE(busy.server.send(io_response(3, kSize)));
  ASSERT_TRUE(busy.client.receive());
  for (std::size_t at = 0; at < kSize; at += 262'144) {
    ASSERT_TRUE(busy.server.send(data_message(3, file.bytes(at, 262'144))));
    ASSERT_EQ(problem_of(busy.client.receive().value().payload, file, at), "");
  }

  clients.clear();
  ASSERT_TRUE(
      proxy.wait_until([](const nlohmann::json& now) { return now["connections"]["open"] == 1; }));
  std::optional<ProxiedLink> again = first_link_that_is_served(proxy, server);
  ASSERT_TRUE(again) << "new connections must be served again";
  expect_works(*again, 2);
  again->client.close();
  busy.client.close();
  EXPECT_TRUE(proxy.wait_until_idle());
  EXPECT_LE(proxy.open_files(), files + 2);
}

TEST(ProxyResourceFaults, StatusFileThatCannotBeWrittenIsOneLineAndNoHarm) {
  FakeDataServer server;
  TemporaryDirectory directory;
  const std::string status = (directory.path() / "status.json").string();
  // The status is written to FILE.new first. Here that is a device.
  std::filesystem::create_symlink("/dev/full", status + ".new");
  // This folder is removed after the start.
  const std::filesystem::path folder = directory.path() / "folder";
  const std::vector<std::pair<std::string, std::string>> paths = {
      {status, "is a device, not a regular file"}, {folder / "status.json", "cannot be written"}};
  for (const auto& [path, problem] : paths) {
    std::filesystem::create_directory(folder);
    ProxyProcess proxy({.upstream = server.port(), .status_file = path});
    ProxiedLink link = open_link(proxy, server);
    std::filesystem::remove_all(folder);
    for (orangefs::Tag tag = 1; tag <= 5; ++tag) {
      proxy.process().signal(SIGUSR1);
      expect_works(link, tag);
    }
    EXPECT_TRUE(proxy.logs(problem));
    EXPECT_EQ(proxy.lines_with("status file " + path), 1U);
  }
  EXPECT_FALSE(std::filesystem::exists(status));
}

TEST(ProxyResourceFaults, KilledProxyServesAgainAfterItsRestart) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  expect_works(link, 1);
  ASSERT_TRUE(link.client.send(io_request(2, {})));
  ASSERT_TRUE(link.server.receive());
  proxy.kill();
  EXPECT_TRUE(link.client.closed_by_peer());
  EXPECT_TRUE(link.server.closed_by_peer());
  proxy.start();
  link = open_link(proxy, server);
  expect_works(link, 1);
  EXPECT_TRUE(proxy.wait_until(
      [](const nlohmann::json& now) { return now["virtual_pfs"][0]["done_requests"] == 1; }));
}

TEST(ProxyResourceFaults, MemoryOfAPeakIsGivenBack) {
  if (programs_have_sanitizer()) GTEST_SKIP() << "sanitizers keep memory";
  constexpr int kConnections = 32;
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1});
  ProxiedLink busy = open_link(proxy, server);
  expect_works(busy, 1);
  const std::size_t idle = proxy.own_memory();
  ASSERT_TRUE(busy.client.send(io_request(2, {})));
  ASSERT_TRUE(busy.server.receive());
  std::vector<ProxiedLink> links;
  for (int i = 0; i < kConnections; ++i) {
    links.push_back(open_link(proxy, server));
    for (orangefs::Tag tag = 1; tag <= 100; ++tag) {
      const Buffer request = small_write_request(tag, {}, Buffer(6000));
      if (links.back().client.flood(request, 1, 100ms) == 0) break;
    }
  }
  const std::size_t peak = proxy.own_memory();
  EXPECT_GT(peak, idle + 16 * kMiB);
  links.clear();
  ASSERT_TRUE(busy.server.send(io_response(2, 0)));
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (proxy.own_memory() > idle + 4 * kMiB && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(50ms);  // until the next look
  }
  EXPECT_LE(proxy.own_memory(), idle + 4 * kMiB) << "the peak was " << peak;
}

}  // namespace
}  // namespace vpfs::test
