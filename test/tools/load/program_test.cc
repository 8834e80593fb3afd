// vpfs-load as a program, on embedded servers.
#include <atomic>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "net/async.h"
#include "protocols/orangefs/bmi_header.h"
#include "test/support/places.h"
#include "test/support/process.h"
#include "test/support/servers/embedded_servers.h"

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

// Forwards connections to a server and changes one byte in every large message from it.
class DamagingRelay {
 public:
  DamagingRelay() : acceptor_(loop_, net::Endpoint(asio::ip::address_v4::loopback(), 0)) {}
  ~DamagingRelay() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }
  DamagingRelay(const DamagingRelay&) = delete;
  DamagingRelay& operator=(const DamagingRelay&) = delete;

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void start(std::uint16_t server) {
    asio::co_spawn(loop_, accept(net::Endpoint(asio::ip::address_v4::loopback(), server)),
                   asio::detached);
    thread_ = std::thread([this] { loop_.run(); });
  }

 private:
  struct Pair {
    net::Socket client;
    net::Socket server;
  };

  net::Task<> accept(net::Endpoint server) {
    for (;;) {
      auto [error, client] = co_await acceptor_.async_accept(net::kUseTask);
      if (error) co_return;
      auto pair = std::make_shared<Pair>(std::move(client), net::Socket(loop_));
      const auto [refused] = co_await pair->server.async_connect(server, net::kUseTask);
      if (refused) continue;
      asio::co_spawn(loop_, forward(pair, pair->client, pair->server, false), asio::detached);
      asio::co_spawn(loop_, forward(pair, pair->server, pair->client, true), asio::detached);
    }
  }

  static net::Task<> forward(std::shared_ptr<Pair> pair, net::Socket& from, net::Socket& to,
                             bool damage) {
    std::vector<std::byte> message;
    for (;;) {
      message.resize(orangefs::kBmiHeaderSize);
      const auto head = asio::buffer(message);
      const auto [cut, head_size] = co_await asio::async_read(from, head, net::kUseTask);
      const auto header = orangefs::decode_bmi_header(message);
      if (cut || !header) break;
      message.resize(orangefs::kBmiHeaderSize + static_cast<std::size_t>(header->payload_size));
      const auto payload = asio::buffer(message) + orangefs::kBmiHeaderSize;
      const auto [torn, payload_size] = co_await asio::async_read(from, payload, net::kUseTask);
      if (torn) break;
      if (damage && header->payload_size >= 4096) message[3000] ^= std::byte{1};
      const auto all = asio::buffer(message);
      const auto [lost, written] = co_await asio::async_write(to, all, net::kUseTask);
      if (lost) break;
    }
    std::error_code ignored;
    pair->client.close(ignored);
    pair->server.close(ignored);
  }

  asio::io_context loop_;
  asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
};

class Program : public testing::Test {
 protected:
  test::Process run(const std::string& config, std::vector<std::string> options) {
    std::vector<std::string> command = {test::program("vpfs-load"), "--config",
                                        scratch_.write("load.yaml", config)};
    command.insert(command.end(), options.begin(), options.end());
    return test::Process(command);
  }

  test::TemporaryDirectory scratch_;
};

std::string mixed_load(const std::string& address) {
  return fmt::format(
      "file_system: {}\nverify: true\nduration: 2 s\nwarm_up: 100 ms\nthreads: 2\n"
      "applications:\n"
      "  - {{name: large, processes: 2, outstanding: 4, size: 300 KiB, read_percent: 50,"
      " file_size: 6 MiB}}\n"
      "  - {{name: small, outstanding: 8, size: 4 KiB, read_percent: 50, pattern: random,"
      " file_size: 1 MiB}}\n",
      address);
}

TEST_F(Program, VerifiesEveryBlockAndWritesJson) {
  test::EmbeddedServers servers(2);
  const std::string json_file = (scratch_.path() / "out.json").string();
  test::Process load = run(mixed_load(servers.address()), {"--json", json_file});
  const auto exit = load.wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << load.output() << load.errors() << servers.errors();
  const Json json = Json::parse(test::read_text(json_file));
  for (const Json& each : json["applications"]) {
    EXPECT_EQ(each["errors"], 0);
    EXPECT_EQ(each["verify_failures"], 0);
    EXPECT_GT(each["verified_blocks"], 0);
    EXPECT_GT(each["requests"], 0);
  }
}

TEST_F(Program, AnAmountEndsAnApplicationAndANameOfNoServerIsAnError) {
  test::EmbeddedServers servers(2);
  const std::string json_file = (scratch_.path() / "out.json").string();
  const std::string config = fmt::format(
      "file_system: {}\nduration: 60 s\nuntil_done: true\nwarm_up: 0 s\n"
      "applications:\n"
      "  - {{name: a, processes: 3, outstanding: 4, size: 64 KiB, amount: 1 MiB, servers: [s1]}}\n",
      servers.address());
  test::Process load = run(config, {"--json", json_file});
  const auto exit = load.wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << load.output() << load.errors() << servers.errors();
  const Json json = Json::parse(test::read_text(json_file));
  EXPECT_EQ(json["applications"][0]["requests"], 3 * 16);
  EXPECT_GT(json["applications"][0]["last_s"], 0.0);
  EXPECT_LT(json["applications"][0]["last_s"], 60.0);

  test::Process wrong = run(std::string(config).replace(config.find("[s1]"), 4, "[s7]"), {});
  const auto end = wrong.wait(60s);
  ASSERT_TRUE(end);
  EXPECT_NE(end->code, 0);
  EXPECT_NE((wrong.output() + wrong.errors()).find("no server 's7'"), std::string::npos)
      << wrong.output() << wrong.errors();
}

TEST_F(Program, ARunUntilAllAreDoneEndsWithTheLastOfThem) {
  test::EmbeddedServers servers(1);
  const std::string json_file = (scratch_.path() / "out.json").string();
  const std::string config = fmt::format(
      "file_system: {}\nduration: 60 s\nwarm_up: 0 s\nthreads: 4\nuntil_done: true\n"
      "applications:\n"
      "  - {{name: first, processes: 2, size: 64 KiB, amount: 1 MiB}}\n"
      "  - {{name: last, size: 64 KiB, start: 600 ms, amount: 1 MiB}}\n",
      servers.address());
  test::Process load = run(config, {"--json", json_file});
  const auto exit = load.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << load.output() << load.errors() << servers.errors();
  const Json json = Json::parse(test::read_text(json_file));
  EXPECT_EQ(json["ended_early"], false);
  EXPECT_EQ(json["applications"][0]["requests"], 2 * 16);
  EXPECT_EQ(json["applications"][1]["requests"], 16);
  const double last = json["applications"][1]["last_s"];
  EXPECT_GE(last, 0.6);
  EXPECT_GE(json["duration_s"], last);
  EXPECT_LT(json["duration_s"], 30.0);
}

TEST_F(Program, TheFilesOfAnotherLoadThatRunsAreLeftAlone) {
  test::EmbeddedServers servers(1);
  const std::string config = fmt::format(
      "file_system: {}\nduration: 60 s\nwarm_up: 0 s\n"
      "applications: [{{name: a, size: 64 KiB, file_size: 1 MiB}}]\n",
      servers.address());
  test::Process first = run(config, {});
  ASSERT_TRUE(first.wait_for_line("the run begins")) << first.errors();
  test::Process second = run(config, {"--duration", "200ms"});
  const auto refused = second.wait(60s);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, 1);
  EXPECT_NE(second.errors().find(fmt::format("runs as process {} of ", first.pid())),
            std::string::npos)
      << second.errors();
  // Nothing is left alone of one that was killed.
  first.kill();
  test::Process third = run(config, {"--duration", "200ms"});
  const auto exit = third.wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << third.output() << third.errors();
}

TEST_F(Program, EachMeasuredSecondIsALineAndTheWarmUpIsNone) {
  test::EmbeddedServers servers(1);
  test::Process load = run(fmt::format("file_system: {}\nduration: 2300 ms\nwarm_up: 1 s\n"
                                       "applications: [{{name: one, size: 4 KiB}}]\n",
                                       servers.address()),
                           {});
  const auto exit = load.wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << load.errors();
  const std::string output = load.output();
  EXPECT_NE(output.find("the run begins: 1 s of warm-up, then 2.3 s are measured\n"),
            std::string::npos)
      << output;
  const std::regex live(R"( +([0-9.]+) s  one [^\n]* op/s  total)");
  std::vector<std::string> seconds;
  for (std::sregex_iterator each(output.begin(), output.end(), live), end; each != end; ++each) {
    seconds.push_back((*each)[1]);
  }
  EXPECT_EQ(seconds, (std::vector<std::string>{"1.0", "2.0"})) << output;
}

TEST_F(Program, DamagedDataAreReportedWithTheirPlaceAndFailTheRun) {
  DamagingRelay relay;
  test::EmbeddedServers servers(1, "", {relay.port()});
  relay.start(servers.port(0));
  test::Process load =
      run(mixed_load(fmt::format("tcp-px://127.0.0.1:{}/vpfs", relay.port())), {"--no-live"});
  const auto exit = load.wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1) << load.output();
  EXPECT_NE(load.errors().find("wrong data in /load/small.0 at offset "), std::string::npos)
      << load.errors().substr(0, 500);
  EXPECT_NE(load.errors().find("checksum"), std::string::npos);
}

TEST_F(Program, AServerThatDiesIsAnErrorAndNotAHang) {
  test::EmbeddedServers servers(1, "client_timeouts: {retry_limit: 0, retry_delay: 1 ms}\n");
  test::Process load = run(mixed_load(servers.address()), {"--duration", "2 s"});
  ASSERT_TRUE(load.wait_for_line("1.0 s", 30s)) << load.errors();
  servers.server(0).kill();
  const auto exit = load.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_NE(load.errors().find("/load/"), std::string::npos);
  EXPECT_NE(load.errors().find(fmt::format(" 127.0.0.1:{}: ", servers.port(0))), std::string::npos)
      << load.errors().substr(0, 500);
}

// The first server answers and names a second one.
TEST_F(Program, AServerThatIsNotThereIsNamed) {
  test::EmbeddedServers servers(2);
  (void)servers.server(1).kill();
  test::Process load = run(mixed_load(servers.address()), {});
  const auto exit = load.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  const std::string expected =
      fmt::format("GETCONFIG to 127.0.0.1:{}: Connection refused", servers.port(1));
  EXPECT_NE(load.errors().find(expected), std::string::npos) << load.errors();
}

TEST_F(Program, ARunThatFailsLeavesEarlierResults) {
  const test::EmbeddedServers servers(1);
  const std::string results = scratch_.write("out.json", "earlier");
  const test::ReservedPort nobody;
  test::Process load =
      run(mixed_load(fmt::format("tcp://127.0.0.1:{}/vpfs", nobody.number())), {"--json", results});
  const auto exit = load.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_EQ(test::read_text(results), "earlier");
  const std::string config = mixed_load(servers.address());
  test::Process mistake = run(config, {"--json", (scratch_.path() / "load.yaml").string()});
  const auto refused = mistake.wait(30s);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, 2);
  EXPECT_NE(mistake.errors().find("which is read"), std::string::npos) << mistake.errors();
  EXPECT_EQ(test::read_text(scratch_.path() / "load.yaml"), config);
}

TEST_F(Program, NothingToMountIsOneClearLine) {
  const test::ReservedPort nobody;
  test::Process load = run(mixed_load(fmt::format("tcp://{}/vpfs", nobody.address())), {});
  const auto exit = load.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_NE(load.errors().find("cannot mount tcp://" + nobody.address()), std::string::npos)
      << load.errors();
}

TEST_F(Program, ABadConfigurationExitsWithTwo) {
  test::Process load = run("applications: []\nthreads: none\n", {"--check-config"});
  const auto exit = load.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 2);
  EXPECT_NE(load.errors().find("load.yaml:2: threads"), std::string::npos) << load.errors();
  EXPECT_NE(load.errors().find("file_system"), std::string::npos) << load.errors();
}

TEST_F(Program, AnUnknownOptionExitsWithTwo) {
  const auto exit = run("", {"--speed", "11"}).wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 2);
}

}  // namespace
}  // namespace vpfs::load
