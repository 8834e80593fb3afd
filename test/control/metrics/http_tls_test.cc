// The HTTP port with TLS: only clients with a certificate that may read are answered.
#include "control/metrics/http_tls.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "control/metrics/http_port.h"
#include "test/control/metrics/example_stats.h"
#include "test/support/control/certificates.h"
#include "test/support/control/https_client.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpTlsTest : public ::testing::Test {
 protected:
  HttpTlsTest() {
    test::make_certificates(certificates(), {"server=localhost,127.0.0.1", "reader", "stranger"});
    test::make_certificates(certificates(), {"--foreign", "foreign"});
  }

  [[nodiscard]] std::filesystem::path certificates() const { return directory_.path() / "tls"; }
  [[nodiscard]] PortConfig control(const std::string& reader = "reader") const {
    const net::TlsFiles files = test::certificate_files(certificates(), "server");
    PortConfig config;
    config.certificate = files.certificate;
    config.key = files.key;
    config.ca = files.ca;
    config.readers = {parse_principal("cert:" + reader).value()};
    return config;
  }
  void start(HttpLimits limits = {}) {
    HttpSource source;
    source.stats = [](auto answer) { answer(test::example_stats()); };
    source.not_ready = [] { return std::string(); };
    source.ask = [](Envelope, const std::function<void(Envelope)>& answer) {
      Envelope reply;
      reply.mutable_status_reply()->set_json("{}");
      answer(std::move(reply));
    };
    auto tls = load_http_tls(control());
    ASSERT_TRUE(tls) << tls.error().message;
    auto port = HttpPort::open({.tls_address = "127.0.0.1:0"}, std::move(source), "1.2.3", clock_,
                               limits, std::move(*tls));
    ASSERT_TRUE(port) << port.error().message;
    port_ = std::move(*port);
  }
  std::optional<std::string> ask(const std::string& name, const std::string& request) {
    return test::ask_https(port_->local_endpoint(), certificates(), name, request);
  }
  std::optional<std::string> get(const std::string& name, const std::string& path) {
    return ask(name, "GET " + path + " HTTP/1.1\r\nHost: stor0.example\r\n\r\n");
  }

  test::TemporaryDirectory directory_;
  const SystemClock clock_;
  std::unique_ptr<HttpPort> port_;
};

TEST_F(HttpTlsTest, AReaderGetsThePageAndMetricsByWhateverNameTheHostHas) {
  start();
  EXPECT_THAT(get("reader", "/").value_or(""), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(get("reader", "/page.js").value_or(""), HasSubstr("'use strict'"));
  EXPECT_THAT(get("reader", "/api/status").value_or(""), HasSubstr("{}"));
  EXPECT_THAT(get("reader", "/metrics").value_or(""), HasSubstr("vpfs_build_info"));
  EXPECT_THAT(get("reader", "/healthz").value_or(""), HasSubstr("ok\n"));
  EXPECT_THAT(get("reader", "/nothing").value_or(""), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpTlsTest, AHeadIsAnsweredWithoutABody) {
  start();
  const std::string answer =
      ask("reader", "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n").value_or("");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpTlsTest, OneHostThatTakesAllPlacesKeepsNoOtherOut) {
  start({.connections = 8, .patience = 5s});
  asio::io_context context;
  std::vector<net::Socket> silent;
  const auto flood = [&] {
    net::Socket& made = silent.emplace_back(context);
    made.open(asio::ip::tcp::v4());
    made.bind({asio::ip::make_address("127.0.0.2"), 0});
    made.connect(port_->local_endpoint());
  };
  for (int i = 0; i < 32; ++i) flood();
  std::jthread flooder([&](const std::stop_token& stop) {
    for (int i = 0; i < 500 && !stop.stop_requested(); ++i) {
      flood();
      std::this_thread::sleep_for(1ms);
    }
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(get("reader", "/healthz").value_or(""), HasSubstr("ok\n"));
  }
}

TEST_F(HttpTlsTest, OthersGetNothing) {
  start();
  for (const char* path : {"/", "/metrics", "/api/status", "/healthz"}) {
    const std::string answer = get("stranger", path).value_or("");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 Forbidden\r\n")) << path;
    EXPECT_THAT(answer, HasSubstr("in neither control.readers nor control.writers"));
  }
  EXPECT_FALSE(get("foreign", "/")) << "a certificate of another authority";
}

TEST_F(HttpTlsTest, AReloadIsForNewConnections) {
  start();
  auto tls = load_http_tls(control("stranger"));
  ASSERT_TRUE(tls) << tls.error().message;
  port_->use(std::move(*tls));
  EXPECT_THAT(get("reader", "/").value_or(""), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(get("stranger", "/").value_or(""), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpTlsTest, OneThatDoesNotSpeakTlsIsClosedAndOthersAreServed) {
  start({.connections = 4, .patience = 300ms});
  asio::io_context context;
  std::vector<net::Socket> silent;
  for (int i = 0; i < 8; ++i) {
    silent.emplace_back(context).connect(port_->local_endpoint());
    if (i % 2 == 0) asio::write(silent.back(), asio::buffer(std::string("GET / HTTP/1.1\r\n\r\n")));
  }
  EXPECT_THAT(get("reader", "/healthz").value_or(""), HasSubstr("ok\n"));
  for (net::Socket& each : silent) {
    std::array<char, 1024> part = {};
    std::error_code error;
    while (!error) (void)each.read_some(asio::buffer(part), error);
    EXPECT_TRUE(error) << "it is closed";
  }
}

TEST_F(HttpTlsTest, ThePortEndsWhileClientsAreInTheMiddle) {
  start();
  asio::io_context context;
  std::vector<net::Socket> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(context).connect(port_->local_endpoint());
    asio::write(clients.back(), asio::buffer("\x16\x03\x01", 3));
  }
  // The port takes connections in their order, so it has taken all of them then.
  EXPECT_THAT(get("reader", "/healthz").value_or(""), HasSubstr("ok\n"));
  port_.reset();
}

TEST_F(HttpTlsTest, FilesThatAreNotThereAreNamed) {
  PortConfig config = control();
  config.certificate = "/nowhere/x.pem";
  const auto tls = load_http_tls(config);
  ASSERT_FALSE(tls);
  EXPECT_THAT(tls.error().message, StartsWith("control.certificate: /nowhere/x.pem"));
  ConfigErrors errors("p.yaml");
  check_http_tls({.tls_address = "0.0.0.0:9465"}, config, errors);
  EXPECT_THAT(errors.to_string(), HasSubstr("control.https: control.certificate: /nowhere/x.pem"));
  ConfigErrors none("p.yaml");
  check_http_tls({.tls_address = "0.0.0.0:9465"}, control(), none);
  EXPECT_EQ(none.to_string(), "");
}

}  // namespace
}  // namespace vpfs::control
