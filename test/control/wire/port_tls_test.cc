#include <gmock/gmock.h>

#include "net/tls.h"
#include "test/control/wire/port_fixture.h"
#include "test/support/comes_true.h"
#include "test/support/control/certificates.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::client_tls;
using test::comes_true;
using test::RawPeer;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// The port on TCP of a server with the name of its certificate; certificates are made once.
class PortTlsTest : public test::PortFixture {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<test::TemporaryDirectory>();
    test::make_certificates(certificates(), {"server=localhost,127.0.0.1", "elsewhere=stor9", "ops",
                                             "reader", "stranger"});
    test::make_certificates(certificates(),
                            {"--expired", "expired", "expired-server=localhost,127.0.0.1"});
    test::make_certificates(certificates(),
                            {"--foreign", "alien", "alien-server=localhost,127.0.0.1"});
  }
  static void TearDownTestSuite() { folder.reset(); }
  [[nodiscard]] static const std::filesystem::path& certificates() { return folder->path(); }

  void open_tls(const std::string& server = "server") {
    const net::TlsFiles files = test::certificate_files(certificates(), server);
    config_.tcp = "127.0.0.1:0";
    config_.certificate = files.certificate;
    config_.key = files.key;
    config_.ca = files.ca;
    config_.readers = {{.kind = Principal::Kind::certificate, .name = "reader"}};
    config_.writers = {{.kind = Principal::Kind::certificate, .name = "ops"}};
    open();
  }

  [[nodiscard]] PortAddress address() const {
    return {.path = "", .host = "127.0.0.1", .port = port_->tcp_endpoint()->port()};
  }
  [[nodiscard]] Reply<PortClient> connect(const std::string& name) const {
    ClientOptions options;
    options.tls = client_tls(certificates(), name);
    return PortClient::connect(address(), options);
  }
  [[nodiscard]] std::string problem_of(const std::string& name) const {
    const auto client = connect(name);
    return client ? "connected" : client.error().error.text();
  }

  static std::unique_ptr<test::TemporaryDirectory> folder;
};

std::unique_ptr<test::TemporaryDirectory> PortTlsTest::folder;

TEST_F(PortTlsTest, RightsFollowTheNamesInCertificates) {
  open_tls();
  auto ops = connect("ops");
  ASSERT_TRUE(ops) << ops.error().error.text();
  EXPECT_TRUE(ops->ask(reload(0), kPatience));
  const auto seen = ops->ask(stats(0), kPatience);
  EXPECT_EQ(seen->stats_reply().upstream(), "CN=ops");
  EXPECT_THAT(test::read_text(config_.audit), HasSubstr(R"("from":"127.0.0.1")"));

  auto reader = connect("reader");
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reader->ask(stats(0), kPatience));
  const auto refused = reader->ask(reload(0), kPatience);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code(), Error::NOT_PERMITTED);
  EXPECT_THAT(refused.error().error.text(), HasSubstr("CN=reader from 127.0.0.1"));
}

TEST_F(PortTlsTest, ACertificateThatIsNotListedIsRefusedByName) {
  open_tls();
  const auto stranger = connect("stranger");
  ASSERT_FALSE(stranger);
  EXPECT_TRUE(stranger.error().reached);
  EXPECT_EQ(stranger.error().error.code(), Error::NOT_PERMITTED);
  EXPECT_THAT(stranger.error().error.text(), HasSubstr("CN=stranger"));
  EXPECT_THAT(stranger.error().error.text(), HasSubstr("control.readers"));
  EXPECT_EQ(port_->counters().refused, 1U);
}

TEST_F(PortTlsTest, AReloadEndsConnectionsOfCertificatesThatAreNotListedAnyMore) {
  open_tls();
  auto reader = connect("reader");
  ASSERT_TRUE(reader);
  EXPECT_TRUE(reader->ask(stats(0), kPatience));
  config_.readers.clear();
  EXPECT_TRUE(port_->reload(config_));
  EXPECT_TRUE(comes_true([&] { return port_->counters().connections == 0; }));
  EXPECT_FALSE(reader->ask(stats(0), kPatience));
}

TEST_F(PortTlsTest, ExpiredAndForeignCertificatesAreRefusedAndToldSo) {
  open_tls();
  EXPECT_THAT(problem_of("expired"), HasSubstr("this side's certificate has expired"));
  EXPECT_THAT(problem_of("alien"), HasSubstr("does not know the authority"));
  EXPECT_TRUE(comes_true([&] { return port_->counters().handshakes == 2; }));
  EXPECT_TRUE(connect("ops"));
}

TEST_F(PortTlsTest, AClientTellsWhatIsWrongWithAServer) {
  open_tls("expired-server");
  EXPECT_THAT(problem_of("ops"), HasSubstr("the peer's certificate has expired"));
  port_.reset();
  open_tls("alien-server");
  EXPECT_THAT(problem_of("ops"), HasSubstr("an authority that is not in the CA file"));
  port_.reset();
  open_tls("elsewhere");
  EXPECT_THAT(problem_of("ops"), HasSubstr("is for another host"));
  port_.reset();
  open_tls();
  const PortAddress gone = address();
  port_.reset();
  ClientOptions options;
  options.tls = client_tls(certificates(), "ops");
  const auto refused = PortClient::connect(gone, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().error.text(), HasSubstr("nothing listens there"));
}

TEST_F(PortTlsTest, AClientWithoutACertificateIsRefused) {
  open_tls();
  test::Process openssl({"openssl", "s_client", "-connect",
                         "127.0.0.1:" + std::to_string(address().port), "-CAfile",
                         certificates() / "ca.pem"});
  ASSERT_TRUE(openssl.wait());
  EXPECT_TRUE(comes_true([&] { return port_->counters().handshakes == 1; }));
  EXPECT_EQ(port_->counters().requests, 0U);
}

TEST_F(PortTlsTest, WhatIsNotTlsIsClosed) {
  options_.limits.hello = 500ms;
  open_tls();
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100000, '\0'), std::string(5, '\xff'),
        std::string("\x16\x03\x01\xff\xff", 5) + std::string(70000, '\x01'),
        std::string("\x16\x03\x01\x00\x05\x01", 6)}) {
    RawPeer raw(*port_->tcp_endpoint());
    ASSERT_TRUE(raw.connected());
    (void)raw.send(garbage, 100ms);
    EXPECT_TRUE(raw.closed_within());
  }
  EXPECT_TRUE(connect("ops"));
}

TEST_F(PortTlsTest, AConnectionThatSaysNothingIsClosedInItsHandshakeAndAfterIt) {
  options_.limits.hello = 300ms;
  open_tls();
  RawPeer raw(*port_->tcp_endpoint());
  EXPECT_TRUE(raw.closed_within());
  test::Process openssl({"openssl", "s_client", "-quiet", "-connect",
                         "127.0.0.1:" + std::to_string(address().port), "-CAfile",
                         certificates() / "ca.pem", "-cert", certificates() / "ops.pem", "-key",
                         certificates() / "ops.key"});
  ASSERT_TRUE(openssl.wait());
  EXPECT_TRUE(comes_true([&] { return port_->counters().connections == 0; }));
  EXPECT_GE(port_->counters().silent, 1U);
}

TEST_F(PortTlsTest, AReloadReadsCertificatesAgainAndKeepsConnections) {
  open_tls();
  auto before = connect("ops");
  ASSERT_TRUE(before);

  const test::TemporaryDirectory fresh;
  test::make_certificates(fresh.path(), {"server=localhost,127.0.0.1", "ops"});
  // Files that do not belong together change nothing.
  PortConfig mixed = config_;
  mixed.key = fresh.path() / "server.key";
  const auto refused = port_->reload(mixed);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("server.key"));
  EXPECT_TRUE(connect("ops"));

  config_.certificate = fresh.path() / "server.pem";
  config_.key = fresh.path() / "server.key";
  config_.ca = fresh.path() / "ca.pem";
  ASSERT_TRUE(port_->reload(config_));
  EXPECT_TRUE(before->ask(stats(0), kPatience));
  EXPECT_THAT(problem_of("ops"), HasSubstr("an authority that is not in the CA file"));
  ClientOptions options;
  options.tls = client_tls(fresh.path(), "ops");
  EXPECT_TRUE(PortClient::connect(address(), options));
}

TEST_F(PortTlsTest, LongAnswersAndManyRequestsComeThrough) {
  owner_.on_ask([](const Envelope&, const Caller&, const Answer& answer) {
    Ack ack;
    ack.set_text(std::string(3'000'000, 'x'));
    answer(std::move(ack));
  });
  open_tls();
  auto ops = connect("ops");
  ASSERT_TRUE(ops);
  for (int i = 0; i < 5; ++i) {
    const auto answer = ops->ask(reload(0), kPatience);
    ASSERT_TRUE(answer) << answer.error().error.text();
    EXPECT_EQ(answer->ack().text().size(), 3'000'000U);
  }
}

TEST_F(PortTlsTest, FilesThatAreNotCertificatesAreNamed) {
  const std::string text = folder_.write("text", "nothing");
  const auto problem = [&](const net::TlsFiles& files) {
    const auto context = net::TlsContext::load(files, net::TlsSide::server);
    return context ? "" : context.error().message;
  };
  net::TlsFiles files = test::certificate_files(certificates(), "server");
  EXPECT_EQ(problem(files), "");
  EXPECT_THAT(problem({text, files.key, files.ca}), HasSubstr(text + ": is not a certificate"));
  EXPECT_THAT(problem({files.certificate, text, files.ca}), HasSubstr(text + ": is not a key"));
  EXPECT_THAT(problem({files.certificate, files.key, text}), HasSubstr(text + ": has no"));
  EXPECT_THAT(problem({files.certificate, "/none", files.ca}), HasSubstr("/none: No such file"));
  // A passphrase is not asked for.
  test::Process openssl({"openssl", "pkey", "-in", files.key, "-aes128", "-passout", "pass:abcd",
                         "-out", folder_.path() / "locked.key"});
  ASSERT_TRUE(openssl.wait()->ok());
  EXPECT_THAT(problem({files.certificate, folder_.path() / "locked.key", files.ca}),
              HasSubstr("locked.key: is not a key without a passphrase"));
}

}  // namespace
}  // namespace vpfs::control
