#include "net/output_queue.h"

#include <memory>
#include <numeric>
#include <vector>

#include <asio/read.hpp>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/input_stream.h"
#include "test/net/socket_pair.h"

namespace vpfs::net {
namespace {

std::vector<std::byte> pattern(std::size_t size, unsigned start) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(start + i * 7);
  return bytes;
}

// Runs until the socket has delivered `size` bytes, and returns them.
std::vector<std::byte> receive(asio::io_context& context, Socket& socket, std::size_t size) {
  std::vector<std::byte> bytes(size);
  bool done = false;
  asio::async_read(socket, asio::buffer(bytes), [&](std::error_code error, std::size_t) {
    EXPECT_FALSE(error);
    done = true;
  });
  while (!done && context.run_one() > 0) {
  }
  context.restart();
  return bytes;
}

TEST(OutputQueue, KeepsTheOrderOfHeadsPayloadsAndFiles) {
  asio::io_context context;
  auto [near, far] = connected_pair(context);
  OutputQueue queue(near);
  const int file = ::memfd_create("payload", 0);
  ASSERT_GE(file, 0);
  const std::vector<std::byte> content = pattern(300'000, 9);
  ASSERT_EQ(::write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));

  std::vector<std::byte> expected;
  const std::vector<std::byte> payload = pattern(100'000, 5);
  for (unsigned i = 0; i < 50; ++i) {
    OutputQueue::Message message;
    message.head = pattern(24 + i, i);
    expected.insert(expected.end(), message.head.begin(), message.head.end());
    if (i % 3 == 0) {
      message.payload = payload;
      expected.insert(expected.end(), payload.begin(), payload.end());
    }
    if (i % 5 == 0) {
      message.file = {.descriptor = file, .offset = 1000, .size = 200'000};
      expected.insert(expected.end(), content.begin() + 1000, content.begin() + 201'000);
    }
    queue.send(std::move(message));
  }
  EXPECT_EQ(queue.pending(), expected.size());
  EXPECT_EQ(receive(context, far, expected.size()), expected);
  EXPECT_EQ(queue.pending(), 0U);
  queue.close();
  ::close(file);
}

TEST(OutputQueue, ReleasesOwnersOnceWrittenOrClosed) {
  asio::io_context context;
  auto [near, far] = connected_pair(context);
  OutputQueue queue(near);
  auto owner = std::make_shared<std::vector<std::byte>>(pattern(1000, 1));
  const std::weak_ptr<std::vector<std::byte>> watch = owner;
  queue.send({.head = {}, .payload = *owner, .owner = std::move(owner)});
  EXPECT_FALSE(watch.expired());
  (void)receive(context, far, 1000);
  EXPECT_TRUE(watch.expired());

  auto second = std::make_shared<std::vector<std::byte>>(pattern(1000, 1));
  const std::weak_ptr<std::vector<std::byte>> watch_second = second;
  queue.send({.head = {}, .payload = *second, .owner = std::move(second)});
  queue.close();
  EXPECT_TRUE(watch_second.expired());
  EXPECT_FALSE(queue.open());
}

TEST(OutputQueue, WaitersWakeOnRoomAndOnClosing) {
  asio::io_context context;
  auto [near, far] = connected_pair(context);
  OutputQueue queue(near);
  const std::vector<std::byte> large = pattern(64 << 20, 1);  // more than any socket buffer
  queue.send({.head = {}, .payload = large});
  int woken = 0;
  bool open_then = false;
  asio::co_spawn(
      context,
      [&]() -> Task<> {
        open_then = co_await queue.wait_until_pending_at_most(1000);
        ++woken;
        queue.send({.head = {}, .payload = large});
        EXPECT_FALSE(co_await queue.wait_until_pending_at_most(1000));
        ++woken;
      },
      asio::detached);
  EXPECT_EQ(receive(context, far, large.size()), large);
  context.poll();
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(open_then);
  queue.close();
  context.restart();
  context.poll();
  EXPECT_EQ(woken, 2);
}

TEST(OutputQueue, APeerThatIsGoneClosesIt) {
  asio::io_context context;
  auto [near, far] = connected_pair(context);
  OutputQueue queue(near);
  far.set_option(asio::socket_base::linger(true, 0));
  far.close();
  queue.send(pattern(100, 1));
  context.poll();
  queue.send(pattern(100, 1));
  context.restart();
  context.poll();
  EXPECT_FALSE(queue.open());
  EXPECT_EQ(queue.pending(), 0U);
}

TEST(InputStream, FillsReadsAndDiscardsInOrder) {
  asio::io_context context;
  auto [near, far] = connected_pair(context);
  const std::vector<std::byte> sent = pattern(3'000'000, 3);
  OutputQueue queue(near);
  queue.send(sent);
  bool done = false;
  asio::co_spawn(
      context,
      [&]() -> Task<> {
        InputStream in(far, 4096);
        EXPECT_TRUE(co_await in.fill(24));
        EXPECT_GE(in.buffered().size(), 24U);
        EXPECT_EQ(in.buffered()[23], sent[23]);
        in.consume(24);
        std::vector<std::byte> middle(1'000'000);
        EXPECT_TRUE(co_await in.read(middle));
        EXPECT_TRUE(std::equal(middle.begin(), middle.end(), sent.begin() + 24));
        EXPECT_TRUE(co_await in.fill(10));
        EXPECT_TRUE(co_await in.discard(1'999'976 - 100));
        std::vector<std::byte> end(100);
        EXPECT_TRUE(co_await in.read(end));
        EXPECT_TRUE(std::equal(end.begin(), end.end(), sent.end() - 100));
        queue.close();
        near.close();
        EXPECT_FALSE(co_await in.fill(1));
        EXPECT_FALSE(co_await in.read(end));
        EXPECT_FALSE(co_await in.discard(1));
        done = true;
      },
      asio::detached);
  context.run();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace vpfs::net
