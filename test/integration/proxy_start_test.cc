// What a proxy refuses and what it warns of, at its start and at a reload; and what two proxies
// must not share.

#include <csignal>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/support/comes_true.h"
#include "test/support/io_messages.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;

// A proxy started with a configuration file, as an administrator does.
class Started {
 public:
  explicit Started(const std::string& text)
      : config_(directory_.write("p.yaml", text)),
        process_({program("vpfs-proxy"), "--config", config_}) {}

  [[nodiscard]] bool ready() {
    return process_.wait_for_line("vpfs-proxy: ready at", 3 * kPatience);
  }
  [[nodiscard]] std::uint16_t port() const {
    std::smatch found;
    const std::string output = process_.output();
    if (!std::regex_search(output, found, std::regex(R"(ready at \S*:(\d+) )"))) return 0;
    return static_cast<std::uint16_t>(std::stoi(found[1]));
  }
  // Waits for the end of a start that is refused.
  [[nodiscard]] int exit_code() {
    const auto exit = process_.wait();
    return exit ? exit->code : -1;
  }
  [[nodiscard]] const std::string& config() const { return config_; }
  [[nodiscard]] Process& process() { return process_; }

 private:
  TemporaryDirectory directory_;
  std::string config_;
  Process process_;
};

std::string minimal(std::uint16_t upstream, const std::string& more = "") {
  return fmt::format("proxy: {{listen: '127.0.0.1:0', upstream: '127.0.0.1:{}'{}}}\n", upstream,
                     more);
}

TEST(ProxyStart, ADataServerThatIsNotThereIsAWarningAndOneLineForAllClients) {
  const ReservedPort server_port;
  ProxyProcess proxy({.upstream = server_port.number()});
  EXPECT_TRUE(
      proxy.logs(fmt::format("data server: connect to {}: Connection refused; clients are "
                             "refused until it answers",
                             server_port.address())));
  constexpr int kClients = 50;
  for (int i = 0; i < kClients; ++i) {
    WirePeer client = proxy.connect();
    EXPECT_TRUE(client.closed_by_peer());
  }
  EXPECT_EQ(proxy.status()["counters"]["upstream_failures"], kClients);

  FakeDataServer server(server_port.number());
  const ProxiedLink link = open_link(proxy, server);
  EXPECT_TRUE(proxy.logs(fmt::format("data server {} answers again; clients refused meanwhile: {}",
                                     server_port.address(), kClients)));
  EXPECT_EQ(proxy.lines_with("until it answers"), 1U);
  EXPECT_EQ(proxy.lines_with("answers again"), 1U);
}

TEST(ProxyStart, ADataServerThatDiesLaterIsOneLineToo) {
  std::optional<FakeDataServer> server(std::in_place);
  ProxyProcess proxy({.upstream = server->port()});
  { const ProxiedLink link = open_link(proxy, *server); }
  EXPECT_EQ(proxy.lines_with("until it answers"), 0U);
  server.reset();
  for (int i = 0; i < 20; ++i) {
    WirePeer client = proxy.connect();
    EXPECT_TRUE(client.closed_by_peer());
  }
  EXPECT_TRUE(proxy.logs("refused: data server: connect to 127.0.0.1"));
  EXPECT_EQ(proxy.status()["counters"]["upstream_failures"], 20);
  EXPECT_EQ(proxy.lines_with("refused: data server"), 1U);
}

TEST(ProxyStart, AProxyInFrontOfItselfDoesNotStart) {
  const ReservedPort port;
  Started proxy(
      fmt::format("proxy: {{listen: '0.0.0.0:{0}', upstream: '127.0.0.1:{0}'}}\n", port.number()));
  EXPECT_EQ(proxy.exit_code(), 2);
  EXPECT_THAT(proxy.process().errors(), HasSubstr("is where the proxy itself listens"));
}

TEST(ProxyStart, WhatTheHostDoesNotHaveIsRefusedWithItsPlace) {
  Started congestion(minimal(1, ", local_congestion: qubic"));
  EXPECT_EQ(congestion.exit_code(), 2);
  EXPECT_THAT(congestion.process().errors(),
              HasSubstr("p.yaml:1: proxy.local_congestion: 'qubic' is not "));
  Started status(minimal(1, ", status_file: /nowhere/status.json"));
  EXPECT_EQ(status.exit_code(), 2);
  EXPECT_THAT(status.process().errors(),
              HasSubstr("p.yaml:1: proxy.status_file: the folder '/nowhere' does not exist"));
}

TEST(ProxyStart, OneStatusFileHasOneProxyAndItsSuccessorWhenThatHasEnded) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  const std::string text = minimal(1, ", status_file: '" + file + "'");
  std::optional<Started> first(std::in_place, text);
  ASSERT_TRUE(first->ready());
  Started second(text);
  EXPECT_EQ(second.exit_code(), 1);
  EXPECT_EQ(second.process().errors(),
            fmt::format("vpfs-proxy: proxy.status_file: {} belongs to another vpfs-proxy (pid "
                        "{}): each needs its own\n",
                        file, first->process().pid()));

  EXPECT_EQ(first->process().kill().signal, SIGKILL);
  Started third(text);
  ASSERT_TRUE(third.ready()) << third.process().errors();
  EXPECT_EQ(third.process().stop().code, 0);
  Started fourth(text);
  EXPECT_TRUE(fourth.ready()) << fourth.process().errors();
}

// IPv4 clients of [::] have mapped addresses, but rules see IPv4.
TEST(ProxyStart, ListeningOnAllIpv6AddressesServesIpv4AsWhatItIs) {
  const int probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has_ipv6 =
      probe >= 0 && ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  WirePeer sixth(probe);
  if (!has_ipv6) GTEST_SKIP() << "this machine has no IPv6";

  FakeDataServer server;
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "status.json").string();
  Started proxy(
      fmt::format("proxy: {{listen: '[::]:0', upstream: '127.0.0.1:{}', status_file: "
                  "'{}', status_interval: 100 ms, log_level: debug}}\n"
                  "virtual_pfs: {{four: {{}}, six: {{}}}}\n"
                  "rules: [{{match: {{client: 127.0.0.0/8}}, virtual_pfs: four}},\n"
                  "        {{match: {{client: '::1'}}, virtual_pfs: six}}]\n",
                  server.port(), file));
  ASSERT_TRUE(proxy.ready()) << proxy.process().errors();
  WirePeer fourth = WirePeer::connect(proxy.port());
  WirePeer upstream_of_four = server.accept();
  address.sin6_port = htons(proxy.port());
  ASSERT_EQ(::connect(sixth.socket(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  WirePeer upstream_of_six = server.accept();
  ASSERT_TRUE(fourth.send(io_request(1, {.size = 65536})));
  ASSERT_TRUE(sixth.send(io_request(2, {.size = 65536})));
  ASSERT_TRUE(upstream_of_four.receive());
  ASSERT_TRUE(upstream_of_six.receive());

  const auto outstanding = [&] {
    std::vector<int> counts;
    const auto status = nlohmann::json::parse(read_text(file), nullptr, false);
    if (status.is_discarded()) return counts;
    for (const auto& each : status["virtual_pfs"]) counts.push_back(each["outstanding_requests"]);
    return counts;
  };
  const std::vector<int> kOneEach = {0, 1, 1};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (outstanding() != kOneEach && std::chrono::steady_clock::now() < deadline) {
    proxy.process().signal(SIGUSR1);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(outstanding(), kOneEach);
  fourth.close();
  sixth.close();
  EXPECT_TRUE(proxy.process().wait_for_line("client 127.0.0.1:")) << proxy.process().errors();
  EXPECT_EQ(proxy.process().errors().find("::ffff:"), std::string::npos)
      << proxy.process().errors();
  EXPECT_EQ(proxy.process().stop().code, 0);
}

class ProxyReloadChecks : public ::testing::Test {
 protected:
  std::string reload(ProxyProcess& proxy, const std::string& whole) {
    proxy.reload({.upstream = server_.port(), .whole = whole});
    const nlohmann::json reloads = proxy.status()["reloads"];
    return reloads.value("last_error", "");
  }

  FakeDataServer server_;
  const std::string good_ =
      "proxy: {{listen: '{listen}', upstream: '{upstream}', status_file: '{status_file}',\n"
      "        status_interval: 1 h}}\n";
};

TEST_F(ProxyReloadChecks, ATextThatIsNotYamlHasOneTrueMessage) {
  ProxyProcess proxy({.upstream = server_.port(), .whole = good_});
  EXPECT_EQ(reload(proxy, good_ + "rules: [{{virtual_pfs: default\n"),
            proxy.config() + ":4: not YAML: end of map flow not found");
  EXPECT_EQ(proxy.lines_with("cannot change"), 0U);
}

TEST_F(ProxyReloadChecks, AnEmptyFileIsTold) {
  ProxyProcess proxy({.upstream = server_.port(), .whole = good_});
  EXPECT_EQ(reload(proxy, "\n"), proxy.config() + ": is empty");
}

TEST_F(ProxyReloadChecks, RulesThatNeverApplyAreLoggedAtTheStartAndAtAReload) {
  const std::string rules =
      "rules:\n  - {{virtual_pfs: default}}\n  - {{match: {{op: read}}, virtual_pfs: default}}\n";
  ProxyProcess proxy({.upstream = server_.port(), .whole = good_ + rules});
  EXPECT_TRUE(proxy.logs(":5: rules[1]: never applies: rules[0] on line 4"));
  EXPECT_EQ(reload(proxy, good_ + "\n" + rules), "");
  EXPECT_TRUE(proxy.logs(":6: rules[1]: never applies: rules[0] on line 5"));
}

TEST_F(ProxyReloadChecks, AStatusFileThatCannotBeHadIsRefusedAndTheProxyGoesOn) {
  ProxyProcess proxy({.upstream = server_.port(), .whole = good_});
  const TemporaryDirectory directory;
  const std::string taken = (directory.path() / "taken.json").string();
  Started other(minimal(1, ", status_file: '" + taken + "'"));
  ASSERT_TRUE(other.ready()) << other.process().errors();
  const auto with_status = [&](const std::string& file) {
    return "proxy: {{listen: '{listen}', upstream: '{upstream}', status_file: '" + file + "'}}\n";
  };
  EXPECT_THAT(reload(proxy, with_status("/nowhere/status.json")),
              HasSubstr(":1: proxy.status_file: the folder '/nowhere' does not exist"));
  EXPECT_THAT(reload(proxy, with_status(taken)),
              HasSubstr(fmt::format("{} belongs to another vpfs-proxy (pid {})", taken,
                                    other.process().pid())));
  EXPECT_THAT(reload(proxy,
                     "proxy: {{listen: '{listen}', upstream: '{upstream}', status_file: "
                     "'{status_file}', local_congestion: qubic}}\n"),
              HasSubstr(":1: proxy.local_congestion: 'qubic' is not "));
  EXPECT_EQ(reload(proxy, good_), "") << "the proxy still has its old status file";
  const ProxiedLink link = open_link(proxy, server_);
  EXPECT_EQ(proxy.status()["connections"]["open"], 1);
}

}  // namespace
}  // namespace vpfs::test
