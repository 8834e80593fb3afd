// Hand-overs that fail at each step, and what other users may do with the socket.

#include <csignal>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/handover/channel.h"
#include "test/support/io_messages.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using control::HandoverChannel;
using control::HandoverKind;
using control::HandoverMessage;
using control::kHandoverVersion;

constexpr Duration kSoon = std::chrono::seconds(10);

void expect_small_read(ProxiedLink& link, orangefs::Tag tag) {
  const Buffer request = small_read_request(tag, {.size = 4096});
  ASSERT_TRUE(link.client.send(request));
  const auto arrived = link.server.receive();
  ASSERT_TRUE(arrived);
  EXPECT_EQ(arrived->bytes(), request);
  const Buffer answer = small_read_response(tag, StampedFile{.file = 1}.bytes(0, 4096));
  ASSERT_TRUE(link.server.send(answer));
  const auto returned = link.client.receive();
  ASSERT_TRUE(returned);
  EXPECT_EQ(returned->bytes(), answer);
}

SavedState hello_of(std::uint64_t least, std::uint64_t most) {
  SavedState hello;
  hello.set("least", least);
  hello.set("most", most);
  hello.set("program", std::string("a test"));
  return hello;
}

// A process that takes over up to some step, and then is gone.
enum class Last { connected, hello, belongings, ready, state, taken };

void take_over_until(Last last, const std::string& socket) {
  auto channel = HandoverChannel::dial(socket);
  ASSERT_TRUE(channel) << channel.error().message;
  if (last == Last::connected) return;
  ASSERT_TRUE(channel->send(HandoverKind::hello, hello_of(1, kHandoverVersion), kSoon));
  if (last == Last::hello) return;
  const auto offer = channel->receive(kSoon);
  ASSERT_TRUE(offer) << offer.error().message;
  EXPECT_EQ(offer->kind, HandoverKind::belongings);
  if (last == Last::belongings) return;
  ASSERT_TRUE(channel->send(HandoverKind::ready, {}, kSoon));
  if (last == Last::ready) return;
  for (;;) {
    const auto message = channel->receive(kSoon);
    ASSERT_TRUE(message) << message.error().message;
    if (message->kind == HandoverKind::state) break;
    EXPECT_EQ(message->descriptors.size(), 2U);
  }
  if (last == Last::state) return;
  // What it has to say after `taken` is refused before it is said.
  channel->refuse_more();
  ASSERT_TRUE(channel->send(HandoverKind::taken, {}, kSoon));
}

TEST(HandoverFaults, AProcessThatIsGoneAfterAnyStepLeavesTheOldOneAsItWas) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .workers = 2, .depth = 1});
  ProxiedLink link = open_link(proxy, server);
  ProxiedLink other = open_link(proxy, server);
  orangefs::Tag tag = 0;
  std::size_t failures = 0;
  for (int round = 0; round < 5; ++round) {
    for (const Last last :
         {Last::connected, Last::hello, Last::belongings, Last::ready, Last::state, Last::taken}) {
      SCOPED_TRACE(static_cast<int>(last));
      take_over_until(last, proxy.restart_socket());
      ++failures;
      ASSERT_TRUE(proxy.wait_until([&](const nlohmann::json&) {
        return proxy.lines_with("no process has taken over, this one goes on") >= failures;
      }));
      expect_small_read(link, ++tag);
      expect_small_read(other, ++tag);
      if (HasFailure()) return;
    }
  }
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  EXPECT_EQ(proxy.status()["virtual_pfs"][0]["done_requests"], tag);
  EXPECT_EQ(proxy.status()["counters"]["ios_alive"], 0);
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.wait(30s));
  expect_small_read(link, ++tag);
}

TEST(HandoverFaults, AnotherVersionAndNoiseAreRefusedWithOneLine) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  {
    auto channel = HandoverChannel::dial(proxy.restart_socket());
    ASSERT_TRUE(channel);
    ASSERT_TRUE(channel->send(HandoverKind::hello, hello_of(900, 901), kSoon));
    const auto answer = channel->receive(kSoon);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message,
              "the program hands over by version 1, and a test by versions 900 to 901");
  }
  EXPECT_TRUE(proxy.logs("by versions 900 to 901"));
  for (const std::string& noise : {std::string(100, 'x'), std::string(3, '\0')}) {
    ASSERT_TRUE(proxy.wait_until([](const auto&) { return true; }));
    auto channel = HandoverChannel::dial(proxy.restart_socket());
    ASSERT_TRUE(channel);
    (void)::send(channel->native_handle(), noise.data(), noise.size(), MSG_NOSIGNAL);
    (void)::shutdown(channel->native_handle(), SHUT_WR);
    EXPECT_FALSE(channel->receive(kSoon));
  }
  expect_small_read(link, 1);
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.wait(30s));
  expect_small_read(link, 2);
}

// Whoever may connect, another user is refused by what the kernel says of it.
TEST(HandoverFaults, AnotherUserCannotTakeOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "there is no /usr/bin/python3";
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  const auto try_it = [&] {
    const std::string script =
        "import socket,struct,sys\n"
        "s=socket.socket(socket.AF_UNIX)\n"
        "try:\n s.connect(sys.argv[1])\n"
        "except OSError as e:\n print('no:', e.strerror); sys.exit()\n"
        "s.settimeout(5)\n"
        "print(s.recv(4096))\n";
    Process user({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3",
                  "-c", script, proxy.restart_socket()});
    EXPECT_TRUE(user.wait(20s));
    return user.output() + user.errors();
  };
  namespace fs = std::filesystem;
  fs::permissions(fs::path(proxy.restart_socket()).parent_path(), fs::perms{0755});
  EXPECT_EQ(try_it(), "no: Permission denied\n");
  fs::permissions(proxy.restart_socket(), fs::perms{0666});
  const std::string answer = try_it();
  EXPECT_NE(answer.find("uid 65534 may not take over: only root and uid 0 may"), std::string::npos)
      << answer;
  expect_small_read(link, 1);
}

TEST(HandoverFaults, AnotherUsersProxyIsNotTakenOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  TemporaryDirectory directory;
  namespace fs = std::filesystem;
  fs::permissions(directory.path(), fs::perms{0777});
  const std::string path = (directory.path() / "take").string();
  Process other({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3",
                 "-c",
                 "import socket,sys,time\n"
                 "s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
                 "print('listens', flush=True); time.sleep(60)\n",
                 path});
  ASSERT_TRUE(other.wait_for_line("listens", 20s)) << other.errors();
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  Process next({program("vpfs-proxy"), "--config", proxy.config(), "--take-over", path});
  const auto exit = next.wait(20s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_NE(next.errors().find("uid 65534 listens there, and this process has uid 0"),
            std::string::npos)
      << next.errors();
  (void)other.kill();
}

// Is between the two processes, and does something to one of them at one of the steps.
class Between {
 public:
  enum class Step { hello, belongings, ready, state, taken, go };

  Between(std::string listens, std::string dials) : dials_(std::move(dials)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    listens.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = net::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
  }

  // Passes messages on. Before that of `step`, calls `act`.
  void relay(Step step, const std::function<void()>& act) {
    HandoverChannel taker(net::Descriptor(::accept(listener_.get(), nullptr, nullptr)));
    auto giver = HandoverChannel::dial(dials_);
    ASSERT_TRUE(giver);
    const auto pass = [&](HandoverChannel& from, HandoverChannel& to, Step now) {
      for (;;) {
        auto message = from.receive(kSoon * 3);
        if (!message) return false;
        const bool is_connection = message->kind == HandoverKind::parcel;
        if (now == step && !is_connection) act();
        // What a process that is gone would receive cannot be sent.
        if (now == step && now == Step::taken) to.refuse_more();
        std::vector<int> descriptors;
        for (const net::Descriptor& each : message->descriptors) descriptors.push_back(each.get());
        if (!to.send(message->kind, message->state, descriptors, kSoon)) return false;
        if (!is_connection) return true;
      }
    };
    if (!pass(taker, *giver, Step::hello) || !pass(*giver, taker, Step::belongings)) return;
    if (!pass(taker, *giver, Step::ready) || !pass(*giver, taker, Step::state)) return;
    if (!pass(taker, *giver, Step::taken) || !pass(*giver, taker, Step::go)) return;
    // After that the giver alone speaks.
    while (pass(*giver, taker, Step::go)) {
    }
  }

 private:
  std::string dials_;
  net::Descriptor listener_;
};

using Step = Between::Step;

class HandoverStep : public ::testing::TestWithParam<Step> {};

TEST_P(HandoverStep, TheNewProcessIsKilledAndTheOldOneGoesOn) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  expect_small_read(link, 1);
  TemporaryDirectory directory;
  const std::string path = (directory.path() / "between").string();
  Between between(path, proxy.restart_socket());
  Process next({program("vpfs-proxy"), "--config", proxy.config(), "--take-over", path});
  between.relay(GetParam(), [&] { next.kill(); });
  // After `go` the connections are lost, as with any proxy that is killed.
  if (GetParam() == Step::go) {
    EXPECT_TRUE(link.client.closed_by_peer());
    EXPECT_TRUE(proxy.process().wait(30s));
    proxy.kill();
    return;
  }
  EXPECT_TRUE(proxy.logs("no process has taken over, this one goes on"));
  expect_small_read(link, 2);
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.wait(30s));
  expect_small_read(link, 3);
}

TEST_P(HandoverStep, TheOldProcessIsKilledAndTheNewOneEndsOrIsInCharge) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  expect_small_read(link, 1);
  TemporaryDirectory directory;
  const std::string path = (directory.path() / "between").string();
  Between between(path, proxy.restart_socket());
  Process next({program("vpfs-proxy"), "--config", proxy.config(), "--take-over", path});
  between.relay(GetParam(), [&] { proxy.kill(); });
  if (GetParam() == Step::go) {
    EXPECT_TRUE(next.wait_for_line("vpfs-proxy: ready at"));
    expect_small_read(link, 2);
    EXPECT_TRUE(next.stop().ok());
    return;
  }
  const auto exit = next.wait(40s);
  ASSERT_TRUE(exit);
  EXPECT_NE(exit->code, 0);
  EXPECT_TRUE(link.client.closed_by_peer());
}

INSTANTIATE_TEST_SUITE_P(AtEachStep, HandoverStep,
                         ::testing::Values(Step::hello, Step::belongings, Step::ready, Step::state,
                                           Step::taken, Step::go));

TEST(HandoverFaults, ANewProcessThatStopsBeforeItHasTakenOverIsNotWaitedForLong) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  TemporaryDirectory directory;
  const std::string path = (directory.path() / "between").string();
  Between between(path, proxy.restart_socket());
  Process next({program("vpfs-proxy"), "--config", proxy.config(), "--take-over", path});
  between.relay(Step::state, [&] { next.signal(SIGSTOP); });
  EXPECT_TRUE(proxy.process().wait_for_line("did not answer in time", 15s));
  expect_small_read(link, 1);
  next.signal(SIGCONT);
  const auto exit = next.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_NE(exit->code, 0);
  expect_small_read(link, 2);
}

TEST(HandoverFaults, AnOldProcessThatStopsBeforeItSaysGoStaysInCharge) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  Process next(
      {program("vpfs-proxy"), "--config", proxy.config(), "--take-over", proxy.restart_socket()});
  // Stopped somewhere in the hand-over, at a time that chance chooses.
  const auto begun = next.wait_for_line("took over", 10s);
  proxy.process().signal(SIGSTOP);
  EXPECT_TRUE(begun);
  if (next.wait(8s)) {
    proxy.process().signal(SIGCONT);
    EXPECT_TRUE(proxy.logs("no process has taken over, this one goes on"));
    expect_small_read(link, 1);
    return;
  }
  // It had said it.
  proxy.process().signal(SIGCONT);
  EXPECT_TRUE(proxy.process().wait(30s));
  proxy.kill();
  expect_small_read(link, 1);
  EXPECT_TRUE(next.stop().ok());
}

TEST(HandoverFaults, ANewProcessWithTooFewDescriptorsTakesNothing) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  std::vector<ProxiedLink> links;
  for (int i = 0; i < 40; ++i) links.push_back(open_link(proxy, server));
  Process few({"sh", "-c", "ulimit -n 48 && exec \"$0\" \"$@\"", program("vpfs-proxy"), "--config",
               proxy.config(), "--take-over", proxy.restart_socket()});
  const auto exit = few.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_NE(exit->code, 0);
  EXPECT_TRUE(proxy.logs("descriptors do not arrive"));
  orangefs::Tag tag = 0;
  for (ProxiedLink& link : links) expect_small_read(link, ++tag);
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.wait(30s));
  for (ProxiedLink& link : links) expect_small_read(link, ++tag);
}

// A process that takes over, and then closes the channel but runs on.
TEST(HandoverFaults, WhatCannotBeSentEndsItsMessageWithTheOldProcess) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .restart = "patience: 10 ms"});
  ProxiedLink link = open_link(proxy, server);
  const Buffer message = passing_request(1, orangefs::kMaxEagerSize);
  const auto whole = std::span(message);
  ASSERT_TRUE(link.client.send(whole.first(10'000)));
  ASSERT_EQ(link.server.receive_bytes(10'000).size(), 10'000U);
  {
    auto channel = HandoverChannel::dial(proxy.restart_socket());
    ASSERT_TRUE(channel);
    ASSERT_TRUE(channel->send(HandoverKind::hello, hello_of(1, kHandoverVersion), kSoon));
    ASSERT_TRUE(channel->receive(kSoon));
    ASSERT_TRUE(channel->send(HandoverKind::ready, {}, kSoon));
    ASSERT_EQ(channel->receive(kSoon).value().kind, HandoverKind::state);
    ASSERT_TRUE(channel->send(HandoverKind::taken, {}, kSoon));
    ASSERT_EQ(channel->receive(kSoon).value().kind, HandoverKind::go);
  }
  EXPECT_TRUE(proxy.logs("does not take the rest; 1 connections that had stayed"));
  ASSERT_TRUE(link.client.send(whole.subspan(10'000)));
  const Buffer rest = link.server.receive_bytes(message.size() - 10'000);
  EXPECT_TRUE(std::ranges::equal(rest, whole.subspan(10'000)));
  EXPECT_TRUE(link.client.closed_by_peer());
  EXPECT_TRUE(proxy.process().wait(30s));
  proxy.kill();
}

}  // namespace
}  // namespace vpfs::test
