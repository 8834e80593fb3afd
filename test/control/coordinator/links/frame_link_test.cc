#include "control/coordinator/links/frame_link.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio/local/connect_pair.hpp>
#include <asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "net/socket_options.h"
#include "net/unix_socket.h"
#include "test/support/control/certificates.h"
#include "test/support/control/raw_peer.h"
#include "test/support/process.h"

namespace vpfs::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string frame(const std::string& body) {
  return test::length_field(static_cast<std::uint32_t>(body.size())) + body;
}

// Remembers what a link tells.
class RecordingFrameHandler final : public FrameLink::FrameHandler {
 public:
  void opened(FrameLink& link) override {
    ++times_opened;
    if (when_opened) when_opened(link);
  }
  void received(FrameLink& link, std::span<const std::byte> bytes) override {
    frames.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (when_received) when_received(link);
  }
  void ended(FrameLink& /*link*/, const std::string& why) override { ends.push_back(why); }

  int times_opened = 0;
  std::vector<std::string> frames;
  std::vector<std::string> ends;
  std::function<void(FrameLink& link)> when_opened;
  std::function<void(FrameLink& link)> when_received;
};

// A link, and its peer's socket.
class FrameLinkTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kMost = 100'000;

  void SetUp() override {
    auto made = net::ReadySet::make(context_);
    ASSERT_TRUE(made);
    set_ = std::move(*made);
    room_ = std::make_unique<LinkRoom>(*set_);
    asio::local::connect_pair(mine_, peer_);
    peer_.native_non_blocking(true);
    link_ = std::make_unique<FrameLink>(net::make_ready_stream(net::StreamSocket(std::move(mine_))),
                                        *room_, handler_, kMost);
  }

  void open() {
    link_->open();
    turn();
  }
  void turn() {
    for (int i = 0; i < 4; ++i) {
      context_.restart();
      context_.poll();
    }
  }
  void give(const std::string& bytes) {
    ASSERT_EQ(::send(peer_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // What the peer gets now.
  std::string taken() {
    std::string all;
    std::array<char, 65536> buffer;
    for (;;) {
      const ssize_t size = ::recv(peer_.native_handle(), buffer.data(), buffer.size(), 0);
      if (size <= 0) return all;
      all.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }

  asio::io_context context_;
  std::unique_ptr<net::ReadySet> set_;
  std::unique_ptr<LinkRoom> room_;
  net::UnixSocket mine_{context_};
  net::UnixSocket peer_{context_};
  RecordingFrameHandler handler_;
  std::unique_ptr<FrameLink> link_;
};

TEST_F(FrameLinkTest, OpensAtOnceAndFramesGoBothWays) {
  open();
  EXPECT_EQ(handler_.times_opened, 1);
  EXPECT_TRUE(link_->is_open());
  give(frame("abc"));
  turn();
  EXPECT_THAT(handler_.frames, ElementsAre("abc"));
  link_->send(frame("answer"));
  EXPECT_EQ(taken(), frame("answer"));
}

TEST_F(FrameLinkTest, FramesCutAtEveryByteAreTheSame) {
  open();
  const std::string bytes = frame("first one") + frame("ab") + frame(std::string(300, 'x'));
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    handler_.frames.clear();
    give(bytes.substr(0, cut));
    turn();
    give(bytes.substr(cut));
    turn();
    ASSERT_THAT(handler_.frames, ElementsAre("first one", "ab", std::string(300, 'x'))) << cut;
  }
}

TEST_F(FrameLinkTest, SingleBytesMakeFrames) {
  open();
  for (const char byte : frame("abc") + frame("defg")) {
    give(std::string(1, byte));
    turn();
  }
  EXPECT_THAT(handler_.frames, ElementsAre("abc", "defg"));
}

TEST_F(FrameLinkTest, ManyFramesInOneReadComeInOrder) {
  open();
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += frame(fmt::format("frame {}", i));
  give(bytes);
  turn();
  ASSERT_EQ(handler_.frames.size(), 1000U);
  EXPECT_EQ(handler_.frames[999], "frame 999");
}

TEST_F(FrameLinkTest, AFrameThatIsLongerThanOneReadComesWhole) {
  link_->allow(1'000'000);
  open();
  const std::string body(700'000, 'y');
  const std::string bytes = frame(body) + frame("next");
  std::size_t sent = 0;
  for (int i = 0; i < 1000 && sent < bytes.size(); ++i) {
    const ssize_t size = ::send(peer_.native_handle(), bytes.data() + sent, bytes.size() - sent,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) sent += static_cast<std::size_t>(size);
    turn();
  }
  EXPECT_THAT(handler_.frames, ElementsAre(body, "next"));
}

TEST_F(FrameLinkTest, APeerThatNeverStopsSendingLeavesOthersTheirTurn) {
  room_->buffer.resize(4096);
  open();
  const std::string bytes = frame(std::string(50'000, 'z'));
  constexpr int kFrames = 200;
  int sent = 2;
  // There is always more than a read takes.
  handler_.when_received = [&](FrameLink&) {
    if (sent++ < kFrames) give(bytes);
  };
  give(bytes + bytes);
  std::size_t turns_of_others = 0;
  for (int i = 0; i < kFrames && handler_.frames.size() < kFrames; ++i) {
    asio::post(context_, [&] { ++turns_of_others; });
    context_.restart();
    context_.run_one();
    context_.poll_one();
  }
  EXPECT_EQ(handler_.frames.size(), std::size_t{kFrames}) << "the rest was forgotten";
  EXPECT_GE(turns_of_others, 5U);
}

TEST_F(FrameLinkTest, AFrameAboveTheBoundEndsItBeforeItsBytesCome) {
  open();
  give(test::length_field(kMost + 1));
  turn();
  ASSERT_THAT(handler_.ends, ElementsAre(HasSubstr("not the control protocol")));
  EXPECT_FALSE(link_->is_open());
  EXPECT_THAT(handler_.frames, IsEmpty());
}

TEST_F(FrameLinkTest, AFrameTooShortForAMessageEndsIt) {
  open();
  give(frame("ab") + frame("a") + frame("cd"));
  turn();
  EXPECT_THAT(handler_.frames, ElementsAre("ab"));
  EXPECT_EQ(handler_.ends.size(), 1U);
}

TEST_F(FrameLinkTest, GarbageEndsItOnceWhateverFollows) {
  open();
  give("GET / HTTP/1.1\r\n\r\n" + std::string(50'000, 'z'));
  turn();
  EXPECT_EQ(handler_.ends.size(), 1U);
  EXPECT_THAT(handler_.frames, IsEmpty());
}

TEST_F(FrameLinkTest, TheEndOfThePeerIsTold) {
  open();
  give(frame("last") + test::length_field(50));
  peer_.close();
  turn();
  EXPECT_THAT(handler_.frames, ElementsAre("last"));
  EXPECT_THAT(handler_.ends, ElementsAre("it closed the connection"));
}

TEST_F(FrameLinkTest, WhatThePeerDoesNotTakeNowGoesWhenItDoes) {
  open();
  std::string sent;
  for (int i = 0; i < 200; ++i) {
    sent += frame(std::string(20'000, static_cast<char>('a' + i % 26)));
    link_->send(frame(std::string(20'000, static_cast<char>('a' + i % 26))));
  }
  std::string got;
  for (int i = 0; i < 1000 && got.size() < sent.size(); ++i) {
    got += taken();
    turn();
  }
  EXPECT_EQ(got, sent);
  EXPECT_THAT(handler_.ends, IsEmpty());
}

TEST_F(FrameLinkTest, APeerThatStopsReadingIsEndedInALaterTurnAndToldWhy) {
  open();
  const std::string piece = frame(std::string(1024 * 1024, 'x'));
  for (int i = 0; i < 40; ++i) link_->send(piece);
  EXPECT_THAT(handler_.ends, IsEmpty());
  turn();
  EXPECT_THAT(handler_.ends, ElementsAre("it does not read what it is sent"));
  EXPECT_FALSE(link_->is_open());
  link_->send(piece);  // does nothing
  turn();
  EXPECT_EQ(handler_.ends.size(), 1U);
}

TEST_F(FrameLinkTest, APeerThatIsGoneWhileMuchIsUnsentIsToldOnce) {
  open();
  for (int i = 0; i < 10; ++i) link_->send(frame(std::string(100'000, 'x')));
  peer_.close();
  turn();
  EXPECT_EQ(handler_.ends.size(), 1U);
}

TEST_F(FrameLinkTest, ClosingInsideOpenedEndsAllQuietly) {
  handler_.when_opened = [](FrameLink& link) { link.close(); };
  give(frame("abc"));
  open();
  EXPECT_THAT(handler_.frames, IsEmpty());
  EXPECT_THAT(handler_.ends, IsEmpty());
}

TEST_F(FrameLinkTest, ClosingInsideReceivedKeepsTheRestBack) {
  handler_.when_received = [](FrameLink& link) { link.close(); };
  open();
  give(frame("abc") + frame("def") + frame("ghi"));
  turn();
  EXPECT_THAT(handler_.frames, ElementsAre("abc"));
  EXPECT_THAT(handler_.ends, IsEmpty());
}

TEST_F(FrameLinkTest, ClosingInsideReceivedIsSafeWithAFrameThatCameInParts) {
  handler_.when_received = [](FrameLink& link) { link.close(); };
  open();
  const std::string bytes = frame("abc") + frame("def");
  give(bytes.substr(0, 3));
  turn();
  give(bytes.substr(3));
  turn();
  EXPECT_THAT(handler_.frames, ElementsAre("abc"));
}

TEST_F(FrameLinkTest, SendingInsideReceivedAndAfterTheCloseIsHarmless) {
  handler_.when_received = [](FrameLink& link) {
    link.send(frame("answer"));
    link.close();
    link.send(frame("nothing"));
    link.close();
  };
  open();
  give(frame("abc"));
  turn();
  EXPECT_EQ(taken(), frame("answer"));
}

TEST_F(FrameLinkTest, ALinkThatCannotBeWaitedForIsEndedAtOnce) {
  set_->close();
  link_->open();
  EXPECT_THAT(handler_.ends, ElementsAre(HasSubstr("epoll")));
}

// --- TLS -----------------------------------------------------------------------------------------

class TlsLinkTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kMost = std::size_t{4} * 1024 * 1024;

  static void SetUpTestSuite() {
    folder = std::make_unique<test::TemporaryDirectory>();
    test::make_certificates(folder->path(), {"server=localhost,127.0.0.1", "client"});
  }
  static void TearDownTestSuite() { folder.reset(); }

  // One side with a loop of its own, so that the other may pause.
  struct Side {
    Side() {
      auto made = net::ReadySet::make(context);
      EXPECT_TRUE(made);
      set = std::move(*made);
      room = std::make_unique<LinkRoom>(*set);
    }
    void turn() {
      context.restart();
      context.poll();
    }
    asio::io_context context;
    std::unique_ptr<net::ReadySet> set;
    std::unique_ptr<LinkRoom> room;
  };

  void SetUp() override {
    net::ignore_broken_pipes();
    net::UnixSocket one(server_side_.context);
    net::UnixSocket two(client_side_.context);
    asio::local::connect_pair(one, two);
    raw_ = two.native_handle();
    auto context = net::TlsContext::load(test::certificate_files(folder->path(), "server"),
                                         net::TlsSide::server);
    ASSERT_TRUE(context);
    server_ =
        std::make_unique<FrameLink>(net::make_ready_tls_stream(net::StreamSocket(std::move(one)),
                                                               *context, net::TlsSide::server),
                                    *server_side_.room, at_server_, kMost);
    client_ = std::make_unique<FrameLink>(
        net::make_ready_tls_stream(net::StreamSocket(std::move(two)),
                                   test::client_tls(folder->path(), "client"), net::TlsSide::client,
                                   "localhost"),
        *client_side_.room, at_client_, kMost);
  }
  void turn(int count = 50) {
    for (int i = 0; i < count; ++i) {
      server_side_.turn();
      client_side_.turn();
    }
  }

  static std::unique_ptr<test::TemporaryDirectory> folder;
  Side server_side_;
  Side client_side_;
  RecordingFrameHandler at_server_;
  RecordingFrameHandler at_client_;
  std::unique_ptr<FrameLink> server_;
  std::unique_ptr<FrameLink> client_;
  int raw_ = -1;  // the client's socket
};

std::unique_ptr<test::TemporaryDirectory> TlsLinkTest::folder;

TEST_F(TlsLinkTest, FramesThatComeWithTheHandshakeAreNotLeftInside) {
  // Its last message and the frames arrive together.
  at_client_.when_opened = [](FrameLink& link) {
    for (int i = 0; i < 20; ++i) link.send(frame(fmt::format("hello {}", i)));
  };
  server_->open();
  client_->open();
  turn();
  ASSERT_EQ(at_server_.times_opened, 1);
  ASSERT_EQ(at_server_.frames.size(), 20U);
  EXPECT_EQ(at_server_.frames[19], "hello 19");
  EXPECT_THAT(server_->peer_names(), ::testing::Contains("client"));
}

TEST_F(TlsLinkTest, ManyRecordsAndLongFramesComeWhole) {
  server_->open();
  client_->open();
  turn();
  std::string long_one(3'000'000, 'x');
  for (std::size_t i = 0; i < long_one.size(); ++i) long_one[i] = static_cast<char>(i * 7);
  for (int i = 0; i < 500; ++i) client_->send(frame(fmt::format("small {}", i)));
  client_->send(frame(long_one));
  client_->send(frame("last"));
  server_->send(frame(long_one));
  for (int i = 0; i < 200 && at_server_.frames.size() < 502; ++i) turn(5);
  turn();
  ASSERT_EQ(at_server_.frames.size(), 502U);
  EXPECT_EQ(at_server_.frames[499], "small 499");
  EXPECT_TRUE(at_server_.frames[500] == long_one);
  EXPECT_EQ(at_server_.frames[501], "last");
  ASSERT_EQ(at_client_.frames.size(), 1U);
  EXPECT_TRUE(at_client_.frames[0] == long_one);
}

TEST_F(TlsLinkTest, APeerThatStopsReadingIsToldWhy) {
  server_->open();
  client_->open();
  turn();
  for (int i = 0; i < 40; ++i) server_->send(frame(std::string(1024 * 1024, 'x')));
  for (int i = 0; i < 50; ++i) server_side_.turn();
  EXPECT_THAT(at_server_.ends, ElementsAre("it does not read what it is sent"));
}

TEST_F(TlsLinkTest, GarbageInsteadOfAHandshakeIsASentence) {
  server_->open();
  const std::string bytes = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_GT(::send(raw_, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  turn();
  ASSERT_EQ(at_server_.ends.size(), 1U);
  EXPECT_THAT(at_server_.ends[0], HasSubstr("TLS"));
  EXPECT_EQ(at_server_.times_opened, 0);
}

TEST_F(TlsLinkTest, AnEndInTheMiddleOfTheHandshakeIsTold) {
  server_->open();
  ::shutdown(raw_, SHUT_RDWR);
  turn();
  EXPECT_EQ(at_server_.ends.size(), 1U);
  EXPECT_EQ(at_server_.times_opened, 0);
}

TEST_F(TlsLinkTest, ClosingInsideCallbacksIsSafe) {
  at_client_.when_opened = [](FrameLink& link) { link.send(frame("abc") + frame("def")); };
  at_server_.when_opened = [](FrameLink& link) { link.send(frame("first")); };
  at_server_.when_received = [](FrameLink& link) { link.close(); };
  server_->open();
  client_->open();
  turn();
  EXPECT_THAT(at_server_.frames, ElementsAre("abc"));
  EXPECT_THAT(at_client_.frames, ElementsAre("first"));
  EXPECT_EQ(at_client_.ends.size(), 1U);
}

}  // namespace
}  // namespace vpfs::coordinator
