#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/socket_options.h"
#include "test/control/coordinator/links_fixture.h"
#include "test/support/comes_true.h"
#include "test/support/control/certificates.h"
#include "test/support/control/raw_peer.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::Envelope;
using test::client_tls;
using test::comes_true;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = control::Principal::Kind;

class StageLinksTlsTest : public LinksFixture {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<test::TemporaryDirectory>();
    test::make_certificates(folder->path(),
                            {"server=localhost,127.0.0.1", "mount", "stranger", "coordinator"});
    test::make_certificates(folder->path(), {"--expired", "expired"});
    test::make_certificates(folder->path(), {"--foreign", "alien"});
  }
  static void TearDownTestSuite() { folder.reset(); }

  StageLinksTlsTest() {
    net::ignore_broken_pipes();
    const net::TlsFiles files = test::certificate_files(folder->path(), "server");
    config_.listen = {};
    config_.listen.tcp = "127.0.0.1:0";
    config_.listen.certificate = files.certificate;
    config_.listen.key = files.key;
    config_.listen.ca = files.ca;
    config_.listen.writers = {{.kind = Kind::certificate, .name = "mount"}};
  }
  [[nodiscard]] net::Endpoint endpoint() {
    return *on_thread([this] { return links_->tcp_endpoint(); });
  }
  [[nodiscard]] FakeStage dial_as(const std::string& name) {
    return FakeStage::dial(endpoint(), client_tls(folder->path(), name));
  }

  static std::unique_ptr<test::TemporaryDirectory> folder;
};

std::unique_ptr<test::TemporaryDirectory> StageLinksTlsTest::folder;

TEST_F(StageLinksTlsTest, AStageIsTheOneThatItsCertificateNames) {
  open();
  FakeStage stage = dial_as("mount");
  ASSERT_TRUE(stage.connected());
  const auto answer = stage.greet(stage_hello("m1"));
  ASSERT_TRUE(answer && answer->has_hello());
  ASSERT_TRUE(handler_.wait_until_connected(1));
  EXPECT_EQ(handler_.last_hello().address, "CN=mount at 127.0.0.1");
  for (std::uint64_t cycle = 1; cycle < 20; ++cycle) {
    send_cycle(0, cycle);
    ASSERT_EQ(stage.answer_cycle()->sequence(), cycle);
  }
}

// More of them than one turn of the loop has time for.
TEST_F(StageLinksTlsTest, HandshakesOfManyThatComeAtOnceAllEnd) {
  constexpr int kPeers = 40;
  open();
  const net::Endpoint at = endpoint();
  std::atomic<int> connected = 0;
  std::vector<std::jthread> peers;
  on_thread([&] {
    for (int i = 0; i < kPeers; ++i) {
      peers.emplace_back([&] {
        const FakeStage stage = FakeStage::dial(at, client_tls(folder->path(), "mount"));
        if (stage.connected()) ++connected;
      });
    }
    std::this_thread::sleep_for(200ms);  // their first messages are all there
  });
  peers.clear();
  EXPECT_EQ(connected, kPeers);
}

TEST_F(StageLinksTlsTest, ACertificateThatIsNotListedIsRefusedByName) {
  open();
  FakeStage stage = dial_as("stranger");
  const auto answer = stage.receive();
  ASSERT_TRUE(answer && answer->has_error());
  EXPECT_EQ(answer->error().code(), control::Error::NOT_PERMITTED);
  EXPECT_THAT(answer->error().text(),
              HasSubstr("CN=stranger at 127.0.0.1 may not be a stage here"));
  EXPECT_TRUE(stage.closed_within());
  EXPECT_EQ(counters().refused, 1U);
}

TEST_F(StageLinksTlsTest, WrongCertificatesAndGarbageCostNothing) {
  limits_.hello = 500ms;
  open();
  FakeStage good = dial_as("mount");
  ASSERT_TRUE(good.greet(stage_hello("m1")));
  for (const char* const name : {"expired", "alien"}) {
    // TLS 1.3: the client is done before the server has looked at its certificate.
    FakeStage stage = dial_as(name);
    EXPECT_FALSE(stage.greet(stage_hello(name)));
  }
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\0'),
        test::frame_of(Envelope()), std::string("\x16\x03\x01\xff\xff", 5) + std::string(500, 'x'),
        std::string("\x16\x03\x01\x00\x05\x01", 6), std::string()}) {
    test::RawPeer raw(endpoint());
    ASSERT_TRUE(raw.connected());
    (void)raw.send(garbage, 100ms);
    EXPECT_TRUE(raw.closed_within());
  }
  send_cycle(0, 1);
  EXPECT_TRUE(good.answer_cycle());
  EXPECT_EQ(handler_.stages().size(), 1U);
}

TEST_F(StageLinksTlsTest, CoordinatorsDialStagesOverTls) {
  // The stage's side is another one's listening port: it refuses a coordinator by its role.
  open();
  const std::string address = fmt::format("127.0.0.1:{}", endpoint().port());
  RecordingStageHandler handler;
  Config config;
  config.name = "dialler";
  config.dialling = test::certificate_files(folder->path(), "mount");
  config.dial.push_back({.name = "x", .address = *control::parse_port_address(address)});
  std::unique_ptr<StageLinks> links;
  on_thread([&] {
    auto opened = StageLinks::open(context_, clock_, config, handler, limits_);
    ASSERT_TRUE(opened) << opened.error().message;
    links = std::move(*opened);
    links->start();
  });
  const auto problem = [&] { return on_thread([&] { return links->absent()[0].problem; }); };
  EXPECT_TRUE(comes_true([&] {
    return problem().find("only stages may dial") != std::string::npos;
  })) << problem();
  on_thread([&] { links.reset(); });
  EXPECT_THAT(handler_.stages(), IsEmpty());
}

TEST_F(StageLinksTlsTest, AnInvalidCertificateIsAnErrorOfItsKey) {
  config_.listen.key = "/none.key";
  const auto links = StageLinks::open(context_, clock_, config_, handler_, limits_);
  ASSERT_FALSE(links);
  EXPECT_THAT(links.error().message, HasSubstr("stages.listen.certificate: /none.key"));
  config_.listen = {};
  config_.dialling = {.certificate = "/none.pem", .key = "/none.key", .ca = "/none.ca"};
  config_.dial.push_back({.name = "", .address = {.path = "", .host = "localhost", .port = 1}});
  const auto dialling = StageLinks::open(context_, clock_, config_, handler_, limits_);
  ASSERT_FALSE(dialling);
  EXPECT_THAT(dialling.error().message, HasSubstr("stages.certificate: /none.pem"));
}

TEST_F(StageLinksTlsTest, APortThatIsTakenIsAnErrorOfItsKey) {
  open();
  config_.listen.tcp = fmt::format("127.0.0.1:{}", endpoint().port());
  const auto links = StageLinks::open(context_, clock_, config_, handler_, limits_);
  ASSERT_FALSE(links);
  EXPECT_THAT(links.error().message, HasSubstr("stages.listen.tcp: "));
}

}  // namespace
}  // namespace vpfs::coordinator
