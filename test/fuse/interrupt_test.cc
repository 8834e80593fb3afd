#include "fuse/interrupt.h"

#include <csignal>

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

// A process that has a signal pending, since it is stopped.
bool obeys_pending(int signal, const std::string& command) {
  test::Process process(
      {"bash", "-c", command + "echo ready; while :; do read -t 60 line <> <(:); done"});
  EXPECT_TRUE(process.wait_for_line("ready"));
  process.signal(SIGSTOP);
  for (int i = 0; i < 500; ++i) {
    const std::string status =
        test::read_text("/proc/" + std::to_string(process.pid()) + "/status");
    if (status.find("State:\tT") != std::string::npos) break;
    ::usleep(10'000);
  }
  if (signal != 0) process.signal(signal);
  return obeys(Interrupts::of_dying, process.pid());
}

TEST(Interrupts, ASignalThatEndsTheProcessIsObeyed) {
  EXPECT_TRUE(obeys_pending(SIGTERM, ""));
  EXPECT_TRUE(obeys_pending(SIGALRM, ""));
}

TEST(Interrupts, ASignalThatTheProcessHandlesOrIgnoresIsNot) {
  EXPECT_FALSE(obeys_pending(SIGUSR1, "trap : USR1; "));
  EXPECT_FALSE(obeys_pending(SIGTERM, "trap '' TERM; "));
  EXPECT_FALSE(obeys_pending(SIGWINCH, ""));
  EXPECT_FALSE(obeys_pending(0, ""));
}

TEST(Interrupts, AProcessThatCannotBeSeenMayBeDying) {
  EXPECT_TRUE(obeys(Interrupts::of_dying, 0));
}

TEST(Interrupts, AllAreObeyedWhereTheMountSaysSo) {
  EXPECT_TRUE(obeys(Interrupts::all, ::getpid()));
  EXPECT_FALSE(obeys(Interrupts::of_dying, ::getpid()));
}

}  // namespace
}  // namespace vpfs::fuse
