// Requests that make no progress when a new process takes over.

#include <chrono>
#include <cstdint>

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

// A message of the data server comes to the client, and one of the client to the data server.
void expect_answer(ProxiedLink& link, const Buffer& answer) {
  ASSERT_TRUE(link.server.send(answer));
  EXPECT_TRUE(link.client.receive().value().bytes() == answer);
}
void expect_data(ProxiedLink& link, const Buffer& data) {
  ASSERT_TRUE(link.client.send(data));
  EXPECT_TRUE(link.server.receive().value().bytes() == data);
}

// The data server has said that it takes that write, which has no data yet.
void begin_write(ProxiedLink& link, std::int64_t size) {
  ASSERT_TRUE(link.client.send(io_request(1, {.type = IoType::write, .size = size})));
  ASSERT_TRUE(link.server.receive());
  expect_answer(link, io_response(1, 0));
}

class HandoverStalls : public ::testing::Test {
 protected:
  void begin_write(std::int64_t size) { test::begin_write(link_, size); }
  void expect_answer(const Buffer& answer) { test::expect_answer(link_, answer); }
  void expect_data(const Buffer& data) { test::expect_data(link_, data); }

  const Buffer data_ = data_message(1, StampedFile{.file = 1}.bytes(0, 262'144));
  FakeDataServer server_;
  ProxyProcess proxy_{{.upstream = server_.port(), .restart = "patience: 10 ms"}};
  ProxiedLink link_ = open_link(proxy_, server_);
};

// A client that was stopped for longer than its time-out repeats its I/O under another tag.
TEST_F(HandoverStalls, AWriteThatItsClientHasGivenUpDoesNotKeepTheOthers) {
  begin_write(600'000);
  expect_data(data_);

  Process old = proxy_.hand_over();
  EXPECT_TRUE(old.running());
  expect_read(link_, 2);
  EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
  EXPECT_NE(old.errors().find("made no progress for 2 s"), std::string::npos) << old.errors();
  EXPECT_EQ(proxy_.status()["connections"]["open"], 1);
  ASSERT_TRUE(proxy_.wait_for_outstanding(0));

  // If it goes on nevertheless, all of it passes.
  expect_data(data_);
  expect_answer(write_completion(1, 600'000));
  expect_read(link_, 3);
}

// A data server cancels a flow without a word when its client has taken nothing for 30 s.
TEST_F(HandoverStalls, NorDoesAReadThatTheDataServerHasCancelled) {
  ASSERT_TRUE(link_.client.send(io_request(1, {.size = 600'000})));
  ASSERT_TRUE(link_.server.receive());
  expect_answer(io_response(1, 600'000));
  expect_answer(data_);
  Process old = proxy_.hand_over();
  EXPECT_TRUE(old.running());
  expect_read(link_, 2);
  EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
  ASSERT_TRUE(proxy_.wait_for_outstanding(0));
  EXPECT_EQ(proxy_.status()["connections"]["open"], 1);
  expect_read(link_, 3);
}

// Nothing waits for it, so it has its time.
TEST_F(HandoverStalls, AWriteThatKeepsNothingEndsWithTheOldProcess) {
  begin_write(262'144);
  Process old = proxy_.hand_over();
  EXPECT_FALSE(old.wait(4s)) << old.errors();
  expect_data(data_);
  expect_answer(write_completion(1, 262'144));
  EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
  ASSERT_TRUE(proxy_.wait_for_outstanding(0));
  EXPECT_EQ(proxy_.status()["virtual_pfs"][0]["done_requests"], 1);
}

// Only the new process knows which requests wait for its slot.
TEST(HandoverStallsOfOthers, ASlowClientThatStaysKeepsNoSlotFromThoseThatWent) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .depth = 1,
                      .timeouts = "client_stall: 400 ms",
                      .restart = "patience: 10 ms"});
  ProxiedLink slow = open_link(proxy, server);
  ProxiedLink other = open_link(proxy, server);
  begin_write(slow, 262'144);
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.running());
  expect_read(other, 2);
  EXPECT_NE(old.errors().find("1 of its requests give up"), std::string::npos) << old.errors();

  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 262'144));
  expect_data(slow, data);
  expect_answer(slow, write_completion(1, 262'144));
  EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  EXPECT_EQ(proxy.status()["virtual_pfs"][0]["done_requests"], 2);
}

// Nor do those that wait at the data server behind its transfer.
TEST(HandoverStallsOfOthers, WhatWaitsBehindASlowClientKeepsNoSlotEither) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(),
                      .depth = 2,
                      .timeouts = "client_stall: 400 ms",
                      .restart = "patience: 10 ms"});
  ProxiedLink slow = open_link(proxy, server);
  ProxiedLink behind = open_link(proxy, server);
  ProxiedLink behind_too = open_link(proxy, server);
  ProxiedLink other = open_link(proxy, server);
  begin_write(slow, 262'144);
  const Buffer request = small_read_request(1, {.size = 4096});
  ASSERT_TRUE(behind.client.send(request));
  ASSERT_TRUE(behind.server.receive());
  // This one waits, so the slow transfer loses its slot to it.
  ASSERT_TRUE(behind_too.client.send(request));
  ASSERT_TRUE(behind_too.server.receive(kNotStuck));
  ASSERT_EQ(proxy.status()["outstanding"], 2);
  Process old = proxy.hand_over();
  EXPECT_TRUE(old.running());
  expect_read(other, 2);
  EXPECT_NE(old.errors().find("wait at the data server for a slow client"), std::string::npos)
      << old.errors();

  const Buffer data = data_message(1, StampedFile{.file = 1}.bytes(0, 262'144));
  expect_data(slow, data);
  expect_answer(slow, write_completion(1, 262'144));
  const Buffer answer = small_read_response(1, StampedFile{.file = 1}.bytes(0, 4096));
  for (ProxiedLink* const link : {&behind, &behind_too}) expect_answer(*link, answer);
  EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  EXPECT_EQ(proxy.status()["virtual_pfs"][0]["done_requests"], 4);
}

}  // namespace
}  // namespace vpfs::test
