#include "control/wire/client.h"

#include <asio/local/stream_protocol.hpp>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/control/wire/port_fixture.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

using ClientTest = test::PortFixture;

std::string problem_of(const PortAddress& address) {
  ClientOptions options;
  options.connect_within = 2s;
  const auto client = PortClient::connect(address, options);
  if (client) return "connected";
  EXPECT_FALSE(client.error().reached);
  EXPECT_EQ(client.error().error.place(), to_string(address));
  return client.error().error.text();
}

TEST_F(ClientTest, SaysWhyThereIsNoConnection) {
  const std::string folder = folder_.path();
  EXPECT_THAT(problem_of({.path = folder + "/none", .host = ""}), HasSubstr("no such socket"));
  EXPECT_THAT(problem_of({.path = folder_.write("file", ""), .host = ""}),
              HasSubstr("is not a socket"));
  EXPECT_THAT(problem_of({.path = folder + "/file/x", .host = ""}), HasSubstr("is a file"));
  EXPECT_THAT(problem_of({.path = "", .host = "127.0.0.1", .port = 1}),
              HasSubstr("TCP needs a certificate"));
  {
    const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
    asio::local::stream_protocol::endpoint endpoint(config_.socket);
    ASSERT_EQ(::bind(stale, endpoint.data(), static_cast<socklen_t>(endpoint.size())), 0);
    ::close(stale);
  }
  EXPECT_THAT(problem_of({.path = config_.socket, .host = ""}), HasSubstr("its proxy has ended"));
}

TEST_F(ClientTest, ASilentPortHasADeadline) {
  // Accepts, and says nothing.
  const int silent = ::socket(AF_UNIX, SOCK_STREAM, 0);
  asio::local::stream_protocol::endpoint endpoint(config_.socket);
  ASSERT_EQ(::bind(silent, endpoint.data(), static_cast<socklen_t>(endpoint.size())), 0);
  ASSERT_EQ(::listen(silent, 1), 0);
  ClientOptions options;
  options.connect_within = 100ms;
  const auto client = PortClient::connect({.path = config_.socket, .host = ""}, options);
  ASSERT_FALSE(client);
  EXPECT_FALSE(client.error().answers);
  EXPECT_EQ(client.error().error.text(), "no answer within 100 ms");
  ::close(silent);
}

TEST_F(ClientTest, ARequestThatIsTooLongIsRefusedWithItsLength) {
  open();
  auto client = this->client();
  ASSERT_TRUE(client);
  Envelope request;
  request.mutable_rule()->set_file(std::string(std::size_t{5} << 20, '#'));
  const auto answer = client->ask(request, 10s);
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().reached);
  EXPECT_THAT(answer.error().error.text(), HasSubstr("and a control port takes 4194304"));
  EXPECT_TRUE(client->ask(stats(0), 10s)) << "the connection is as before";
}

TEST_F(ClientTest, AnAnswerThatDoesNotComeHasADeadline) {
  owner_.hold();
  open();
  auto client = this->client();
  ASSERT_TRUE(client);
  const auto answer = client->ask(stats(0), 100ms);
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().reached);
  EXPECT_TRUE(answer.error().answers) << "it said Hello";
  EXPECT_EQ(answer.error().error.text(), "no answer within 100 ms");
  const auto again = client->ask(stats(0), 100ms);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().error.text(), HasSubstr("the connection is closed"));
}

TEST_F(ClientTest, ASiteSaysForEachPortWhatHappened) {
  open();
  const std::string none = folder_.path() / "none";
  SiteClient site({{.path = none, .host = ""},
                   {.path = config_.socket, .host = ""},
                   {.path = config_.socket, .host = ""}},
                  {});
  auto answers = site.ask(stats(0), 5s);
  ASSERT_EQ(answers.size(), 3U);
  ASSERT_FALSE(answers[0]);
  EXPECT_EQ(answers[0].error().error.place(), none);
  EXPECT_EQ(site.hello(0), nullptr);
  ASSERT_TRUE(answers[1]);
  EXPECT_EQ(site.hello(1)->name(), "fake");
  ASSERT_TRUE(answers[2]);

  // Connections stay for the next question, which may be another for each.
  const auto others = site.ask({std::nullopt, stats(0), reload(0)}, 5s);
  EXPECT_FALSE(others[0]);
  EXPECT_TRUE((*others[1])->has_stats_reply());
  EXPECT_TRUE((*others[2])->has_ack());
  EXPECT_EQ(port_->counters().accepted, 2U);

  // They are made anew after a restart of the port.
  port_.reset();
  for (const auto& answer : site.ask(stats(0), 5s)) EXPECT_FALSE(answer);
  open();
  answers = site.ask(stats(0), 5s);
  EXPECT_TRUE(answers[1] && answers[2]);
}

TEST_F(ClientTest, ManyPortsTakeAsLongAsOne) {
  constexpr int kPorts = 50;
  owner_.on_ask([](const Envelope&, const Caller&, const Answer& answer) {
    std::thread([answer] {
      std::this_thread::sleep_for(100ms);
      answer(Ack());
    }).detach();
  });
  open();
  SiteClient site(std::vector<PortAddress>(kPorts, {.path = config_.socket, .host = ""}), {});
  const auto begin = clock_.now();
  for (const auto& answer : site.ask(reload(0), 10s)) EXPECT_TRUE(answer);
  EXPECT_LT(clock_.now() - begin, kPorts * 100ms / 2);
}

}  // namespace
}  // namespace vpfs::control
