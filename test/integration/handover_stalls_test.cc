// Requests that make no progress when a new process takes over.

#include <chrono>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;

constexpr std::chrono::seconds kNotStuck = 20s;

void expect_read(ProxiedLink& link, orangefs::Tag tag) {
  const Buffer request = small_read_request(tag, {.size = 4096});
  ASSERT_TRUE(link.client.send(request));
  const auto arrived = link.server.receive(kNotStuck);
  ASSERT_TRUE(arrived) << "the request is held on and on";
  EXPECT_EQ(arrived->bytes(), request);
  const Buffer answer = small_read_response(tag, StampedFile{.file = 1}.bytes(0, 4096));
  ASSERT_TRUE(link.server.send(answer));
  EXPECT_EQ(link.client.receive().value().bytes(), answer);
}

// A client that was stopped for longer than its time-out repeats its I/O under another tag.
TEST(HandoverStalls, AWriteThatItsClientHasGivenUpDoesNotKeepTheOthers) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .restart = "patience: 10 ms"});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {.type = IoType::write, .size = 600'000})));
  ASSERT_TRUE(link.server.receive());
  const Buffer answer = io_response(1, 0);
  ASSERT_TRUE(link.server.send(answer));
  EXPECT_EQ(link.client.receive().value().bytes(), answer);
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 262'144));
  ASSERT_TRUE(link.client.send(data));
  EXPECT_TRUE(link.server.receive().value().bytes() == data);

  Process old = proxy.hand_over();
  EXPECT_TRUE(old.running());
  expect_read(link, 2);
  EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
  EXPECT_NE(old.errors().find("made no progress for 2 s"), std::string::npos) << old.errors();
  EXPECT_EQ(proxy.status()["connections"]["open"], 1);
  ASSERT_TRUE(proxy.wait_for_outstanding(0));

  // If it goes on nevertheless, all of it passes.
  ASSERT_TRUE(link.client.send(data));
  EXPECT_TRUE(link.server.receive().value().bytes() == data);
  const Buffer end = write_completion(1, 600'000);
  ASSERT_TRUE(link.server.send(end));
  EXPECT_EQ(link.client.receive().value().bytes(), end);
  expect_read(link, 3);
}

// A data server cancels a flow without a word when its client has taken nothing for 30 s.
TEST(HandoverStalls, NorDoesAReadThatTheDataServerHasCancelled) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .restart = "patience: 10 ms"});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {.size = 600'000})));
  ASSERT_TRUE(link.server.receive());
  const Buffer answer = io_response(1, 600'000);
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 262'144));
  for (const Buffer& each : {answer, data}) {
    ASSERT_TRUE(link.server.send(each));
    EXPECT_TRUE(link.client.receive().value().bytes() == each);
  }
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.running());
  expect_read(link, 2);
  EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  EXPECT_EQ(proxy.status()["connections"]["open"], 1);
  expect_read(link, 3);
}

// Nothing waits for it, so it has its time.
TEST(HandoverStalls, AWriteThatKeepsNothingEndsWithTheOldProcess) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .restart = "patience: 10 ms"});
  ProxiedLink link = open_link(proxy, server);
  ASSERT_TRUE(link.client.send(io_request(1, {.type = IoType::write, .size = 262'144})));
  ASSERT_TRUE(link.server.receive());
  const Buffer answer = io_response(1, 0);
  ASSERT_TRUE(link.server.send(answer));
  EXPECT_EQ(link.client.receive().value().bytes(), answer);
  Process old = proxy.hand_over();
  EXPECT_FALSE(old.wait(4s)) << old.errors();
  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 262'144));
  ASSERT_TRUE(link.client.send(data));
  EXPECT_TRUE(link.server.receive().value().bytes() == data);
  const Buffer end = write_completion(1, 262'144);
  ASSERT_TRUE(link.server.send(end));
  EXPECT_EQ(link.client.receive().value().bytes(), end);
  EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  EXPECT_EQ(proxy.status()["virtual_pfs"][0]["done_requests"], 1);
}

}  // namespace
}  // namespace vpfs::test
