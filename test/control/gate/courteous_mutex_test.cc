#include "control/gate/courteous_mutex.h"

#include <atomic>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

TEST(CourteousMutex, AThreadThatGivesWayGoesBehindThoseThatWait) {
  CourteousMutex mutex;
  std::atomic<bool> had_it = false;
  std::thread other;
  {
    const std::lock_guard lock(mutex);
    other = std::thread([&] {
      const std::lock_guard its(mutex);
      had_it = true;
    });
    while (!mutex.is_wanted()) std::this_thread::yield();
  }
  // Taking and giving back alone is over many times before a thread has woken up.
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds && !had_it; ++round) {
    mutex.give_way();
    const std::lock_guard lock(mutex);
  }
  EXPECT_TRUE(had_it);
  other.join();
  mutex.give_way();  // no thread waits
}

TEST(CourteousMutex, OneAtATimeHasIt) {
  CourteousMutex mutex;
  int sum = 0;
  const auto add = [&] {
    for (int i = 0; i < 10'000; ++i) {
      {
        const std::lock_guard lock(mutex);
        ++sum;
      }
      if (i % 16 == 0) mutex.give_way();
    }
  };
  std::thread first(add);
  std::thread second(add);
  first.join();
  second.join();
  EXPECT_EQ(sum, 20'000);
}

}  // namespace
}  // namespace vpfs::control
