// A new process takes over the connections of a proxy.

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;

// The old process has nothing left, and ends well.
void expect_end(Process& old) {
  const auto exit = old.wait(30s);
  ASSERT_TRUE(exit) << "the old process still runs: " << old.errors();
  EXPECT_TRUE(exit->ok()) << "exit code " << exit->code << ", signal " << exit->signal << "\n"
                          << old.errors();
}

void expect_relayed(ProxiedLink& link, orangefs::Tag tag) {
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

TEST(Handover, ConnectionsAtRestGoAlongAndTheStatusGoesOn) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .workers = 2});
  ProxiedLink one = open_link(proxy, server);
  ProxiedLink two = open_link(proxy, server);
  expect_relayed(one, 1);
  expect_relayed(two, 2);
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const pid_t before = proxy.process().pid();
  Process old = proxy.hand_over();
  expect_end(old);
  nlohmann::json status = proxy.status();
  EXPECT_EQ(status["pid"], proxy.process().pid());
  EXPECT_NE(proxy.process().pid(), before);
  EXPECT_EQ(status["connections"]["open"], 2);
  EXPECT_EQ(status["connections"]["total"], 2);
  EXPECT_EQ(status["virtual_pfs"][0]["done_requests"], 2);
  expect_relayed(one, 3);
  expect_relayed(two, 4);
  ProxiedLink three = open_link(proxy, server);
  expect_relayed(three, 5);
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  status = proxy.status();
  EXPECT_EQ(status["virtual_pfs"][0]["done_requests"], 5);
  EXPECT_EQ(status["connections"]["total"], 3);
}

TEST(Handover, AHeldRequestGoesAlongAndARequestAtTheServerKeepsItsSlot) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .depth = 1, .restart = "patience: 50 ms"});
  ProxiedLink busy = open_link(proxy, server);
  ProxiedLink waiting = open_link(proxy, server);
  ASSERT_TRUE(busy.client.send(io_request(1, {})));
  ASSERT_TRUE(busy.server.receive());
  const Buffer held = small_read_request(7, {.size = 4096});
  ASSERT_TRUE(waiting.client.send(held));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.running());
  EXPECT_EQ(proxy.status()["queued"], 1);
  EXPECT_EQ(proxy.status()["outstanding"], 1) << "that of the old process";
  EXPECT_FALSE(waiting.server.readable(std::chrono::milliseconds(200)));

  // The old process relays the rest, and gives the slot back.
  const Buffer answer = io_response(1, 65536);
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 65536));
  ASSERT_TRUE(busy.server.send(answer));
  EXPECT_EQ(busy.client.receive().value().bytes(), answer);
  ASSERT_TRUE(busy.server.send(data));
  EXPECT_EQ(busy.client.receive().value().bytes(), data);
  EXPECT_EQ(waiting.server.receive().value().bytes(), held);
  const Buffer read = small_read_response(7, StampedFile{.file = 1}.bytes(0, 4096));
  ASSERT_TRUE(waiting.server.send(read));
  EXPECT_EQ(waiting.client.receive().value().bytes(), read);
  expect_end(old);
  expect_relayed(busy, 2);
  expect_relayed(waiting, 8);
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json status = proxy.status();
  EXPECT_EQ(status["connections"]["open"], 2);
  EXPECT_EQ(status["virtual_pfs"][0]["done_requests"], 4) << "one of them was the old process's";
  EXPECT_EQ(status["counters"]["ios_alive"], 0);
}

// More than may pass without an answer: the rest waits in the stream, as bytes that came later do.
TEST(Handover, HeldMetadataGoAlongToSettingsThatDoNotHoldThem) {
  constexpr orangefs::Tag kRequests = 1500;
  FakeDataServer server;
  ProxySettings settings = {.upstream = server.port(),
                            .depth = 1,
                            .scheduler = "schedule: [io, metadata]",
                            .limits = "held_requests: 2000",
                            .restart = "patience: 50 ms"};
  ProxyProcess proxy(settings);
  ProxiedLink busy = open_link(proxy, server);
  ProxiedLink waiting = open_link(proxy, server);
  ASSERT_TRUE(busy.client.send(io_request(1, {})));
  ASSERT_TRUE(busy.server.receive());
  for (orangefs::Tag tag = 1; tag <= kRequests; ++tag) {
    ASSERT_TRUE(waiting.client.send(getattr_request(tag)));
  }
  ASSERT_TRUE(proxy.wait_for_queued(kRequests));
  settings.scheduler = "schedule: [io]";
  proxy.use_config(proxy.write_config(settings, "later.yaml"));
  Process old = proxy.hand_over();
  for (orangefs::Tag tag = 1; tag <= kRequests; ++tag) {
    const auto request = waiting.server.receive();
    ASSERT_TRUE(request) << tag;
    ASSERT_EQ(request->bytes(), getattr_request(tag));
    ASSERT_TRUE(waiting.server.send(getattr_response(tag)));
    const auto answer = waiting.client.receive();
    ASSERT_TRUE(answer) << tag;
    ASSERT_EQ(answer->bytes(), getattr_response(tag));
  }
  ASSERT_TRUE(busy.server.send(io_response(1, 0)));
  ASSERT_TRUE(busy.client.receive());
  expect_end(old);
  expect_relayed(waiting, 1);
}

TEST(Handover, AConnectionInMidMessageFollowsWhenTheMessageEnds) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .restart = "patience: 50 ms"});
  ProxiedLink link = open_link(proxy, server);
  const Buffer message = passing_request(1, orangefs::kMaxEagerSize);
  const auto whole = std::span(message);
  ASSERT_TRUE(link.client.send(whole.first(10'000)));
  const Buffer first = link.server.receive_bytes(10'000);
  ASSERT_EQ(first.size(), 10'000U);
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.running());
  EXPECT_EQ(proxy.status()["connections"]["open"], 0);
  ASSERT_TRUE(link.client.send(whole.subspan(10'000)));
  const Buffer rest = link.server.receive_bytes(message.size() - 10'000);
  EXPECT_TRUE(std::ranges::equal(rest, whole.subspan(10'000)));
  expect_end(old);
  const nlohmann::json status = proxy.status();
  EXPECT_EQ(status["connections"]["open"], 1);
  EXPECT_EQ(status["counters"]["bytes_to_server"], message.size())
      << "half of it went through the old process after the new one had its counters";
  expect_relayed(link, 2);
}

TEST(Handover, HalfAHeaderAndBytesThatAClientDoesNotTakeGoAlong) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .timeouts = "client_stall: 1 h"});
  ProxiedLink link = open_link(proxy, server, 4096);
  const Buffer request = small_read_request(9, {.size = 4096});
  ASSERT_TRUE(link.client.send(std::span(request).first(10)));
  const Buffer message = data_message(5, StampedFile{.file = 3}.bytes(0, 700));
  const std::size_t sent = fill_client_side(proxy, link, message);
  Process old = proxy.hand_over();
  ASSERT_TRUE(link.client.send(std::span(request).subspan(10)));
  for (std::size_t i = 0; i < sent; ++i) {
    const auto received = link.client.receive(5s);
    ASSERT_TRUE(received) << "message " << i << " of " << sent << " is missing";
    ASSERT_TRUE(received->bytes() == message) << i;
  }
  EXPECT_EQ(link.server.receive().value().bytes(), request);
  expect_end(old);
}

TEST(Handover, AfterTheDrainTheRestIsClosedWithALineThatSaysHowMany) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .restart = "patience: 10 ms, drain: 300 ms"});
  ProxiedLink stuck = open_link(proxy, server);
  ProxiedLink good = open_link(proxy, server);
  const Buffer half = passing_request(1, 1000);
  ASSERT_TRUE(stuck.client.send(std::span(half).first(500)));
  ASSERT_EQ(stuck.server.receive_bytes(500).size(), 500U);
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.wait_for_line(
      "restart.drain: 1 connections came to no boundary within 300 ms: they are closed"))
      << old.errors();
  expect_end(old);
  EXPECT_TRUE(stuck.client.closed_by_peer());
  expect_relayed(good, 2);
}

TEST(Handover, AnotherPolicyMoreWorkersAndOtherRulesTakeOverToo) {
  FakeDataServer server;
  const std::vector<std::string> policies = {"sfq", "tbf", "adaptbf", "edf", "fifo", "sfq"};
  ProxySettings settings = {.upstream = server.port(), .depth = 1};
  ProxyProcess proxy(settings);
  ProxiedLink link = open_link(proxy, server);
  ProxiedLink other = open_link(proxy, server);
  orangefs::Tag tag = 0;
  unsigned round = 0;
  for (const std::string& policy : policies) {
    expect_relayed(link, ++tag);
    settings.policy = policy;
    settings.workers = 1 + ++round % 3;
    settings.virtual_pfs = fmt::format("default: {{weight: {}}}", round);
    proxy.use_config(proxy.write_config(settings, fmt::format("{}.yaml", round)));
    Process old = proxy.hand_over();
    expect_end(old);
    expect_relayed(other, ++tag);
    EXPECT_EQ(proxy.status()["policy"], policy);
    EXPECT_EQ(proxy.status()["virtual_pfs"][0]["done_requests"], tag);
  }
}

TEST(Handover, ABadConfigurationLeavesTheOldProcessAsItWas) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port()});
  ProxiedLink link = open_link(proxy, server);
  expect_relayed(link, 1);
  Process bad = proxy.fail_to_hand_over(
      proxy.write_config({.upstream = server.port(), .policy = "nonsense"}, "bad.yaml"));
  EXPECT_NE(bad.wait()->code, 0);
  EXPECT_TRUE(
      proxy.logs("no process has taken over, this one goes on: waited for the new program "
                 "to be ready"));
  expect_relayed(link, 2);
  Process other = proxy.fail_to_hand_over(
      proxy.write_config({.upstream = server.port(), .protocol = "beegfs"}, "beegfs.yaml"));
  EXPECT_TRUE(proxy.logs("proxy.protocol is beegfs, and was orangefs"));
  expect_relayed(link, 3);
  Process old = proxy.hand_over();
  expect_end(old);
  expect_relayed(link, 4);
}

TEST(Handover, ANewProcessThatCannotOpenAllLeavesTheControlSocket) {
  FakeDataServer server;
  TemporaryDirectory directory;
  const std::string socket = (directory.path() / "control").string();
  ProxyProcess proxy({.upstream = server.port(), .control = "socket: " + socket});
  ProxiedLink link = open_link(proxy, server);
  expect_relayed(link, 1);
  std::ifstream file(proxy.config());
  std::string text(std::istreambuf_iterator<char>(file), {});
  text.replace(text.find(proxy.restart_socket()), proxy.restart_socket().size(), "/nowhere/take");
  Process bad = proxy.fail_to_hand_over(directory.write("bad.yaml", text));
  EXPECT_NE(bad.wait()->code, 0);
  EXPECT_NE(bad.errors().find("restart.socket: /nowhere/take"), std::string::npos) << bad.errors();
  EXPECT_TRUE(proxy.logs("no process has taken over, this one goes on"));
  Process asked({program("vpfsctl"), "--proxy", socket, "status"});
  EXPECT_TRUE(asked.wait(20s)->ok()) << asked.errors();
  Process old = proxy.hand_over();
  expect_end(old);
  expect_relayed(link, 2);
}

TEST(Handover, LiveRulesFollowWhenTheJournalIsAnotherOne) {
  FakeDataServer server;
  TemporaryDirectory directory;
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  ProxySettings settings = {.upstream = server.port()};
  const auto with = [&](const std::string& journal) {
    settings.control = "socket: " + path("control") + journal;
    return settings;
  };
  const auto ask = [&](const std::vector<std::string>& words) {
    std::vector<std::string> command = {program("vpfsctl"), "--proxy", path("control")};
    command.insert(command.end(), words.begin(), words.end());
    Process asked(command);
    EXPECT_TRUE(asked.wait(20s)->ok()) << asked.errors();
    return asked.output();
  };
  ProxyProcess proxy(with(", journal: " + path("one")));
  ask({"rule", "start", "urgent", "jobid=7", "weight=4"});
  int round = 0;
  for (const std::string& journal :
       {", journal: " + path("two"), std::string(), ", journal: " + path("one")}) {
    SCOPED_TRACE("with" + journal);
    proxy.use_config(proxy.write_config(with(journal), fmt::format("{}.yaml", ++round)));
    Process old = proxy.hand_over();
    expect_end(old);
    EXPECT_NE(ask({"rule", "list"}).find("urgent"), std::string::npos);
    ask({"rule", "start", fmt::format("more-{}", round), "jobid=8", "weight=2"});
  }
  EXPECT_NE(read_text(path("two")).find("urgent"), std::string::npos);
  EXPECT_TRUE(proxy.logs("give way to the rules of the process before"));
  const std::string one = read_text(path("one"));
  for (const char* rule : {"urgent", "more-1", "more-2", "more-3"}) {
    EXPECT_NE(one.find(rule), std::string::npos) << rule;
  }
}

}  // namespace
}  // namespace vpfs::test
