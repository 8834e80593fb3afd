#include "net/signal_queue.h"

#include <csignal>
#include <optional>
#include <vector>

#include <asio/post.hpp>
#include <gtest/gtest.h>

namespace vpfs::net {
namespace {

TEST(SignalQueueTest, NoSignalIsLostBetweenTwoContexts) {
  const auto queue = SignalQueue::open({SIGUSR1, SIGUSR2});
  ASSERT_TRUE(queue);
  std::vector<int> seen;
  {
    asio::io_context first;
    SignalReader reader(first, *queue);
    reader.start([&](int signal) {
      seen.push_back(signal);
      first.stop();
    });
    ::raise(SIGUSR1);
    first.run();
    ASSERT_EQ(seen, std::vector<int>{SIGUSR1});
    ::raise(SIGUSR2);  // the context has served its last turn
  }
  ::raise(SIGUSR1);  // there is none
  asio::io_context second;
  SignalReader reader(second, *queue);
  reader.start([&](int signal) {
    seen.push_back(signal);
    if (seen.size() == 3) second.stop();
  });
  second.run();
  EXPECT_EQ(seen, (std::vector<int>{SIGUSR1, SIGUSR1, SIGUSR2})) << "the kernel's order";
}

TEST(SignalQueueTest, AHandlerMayEndTheContextAndTheNextSignalWaits) {
  const auto queue = SignalQueue::open({SIGUSR1, SIGUSR2});
  ASSERT_TRUE(queue);
  ::raise(SIGUSR1);
  ::raise(SIGUSR2);
  for (const int expected : {SIGUSR1, SIGUSR2}) {
    asio::io_context context;
    SignalReader reader(context, *queue);
    std::optional<int> seen;
    reader.start([&](int signal) {
      seen = signal;
      context.stop();
    });
    context.run();
    EXPECT_EQ(seen, expected);
  }
}

}  // namespace
}  // namespace vpfs::net
