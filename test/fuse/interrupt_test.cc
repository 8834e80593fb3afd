#include "fuse/interrupt.h"

#include <csignal>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/comes_true.h"
#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

using test::comes_true;

// Asks about a process that has a signal pending: it is stopped. The shell of `command` says that
// it is ready, and becomes `program`.
bool obeys_pending(int signal, const std::string& command, const std::string& program = "sleep") {
  test::Process process({"bash", "-c", command});
  EXPECT_TRUE(process.wait_for_line("ready"));
  const std::string proc = "/proc/" + std::to_string(process.pid());
  EXPECT_TRUE(comes_true([&] { return test::read_text(proc + "/comm") == program + "\n"; }));
  process.signal(SIGSTOP);
  EXPECT_TRUE(comes_true(
      [&] { return test::read_text(proc + "/status").find("State:\tT") != std::string::npos; }));
  if (signal != 0) process.signal(signal);
  return obeys(Interrupts::of_dying, process.pid());
}

constexpr const char* kSleeps = "echo ready; exec sleep 60";

TEST(Interrupts, ASignalThatEndsTheProcessIsObeyed) {
  EXPECT_TRUE(obeys_pending(SIGTERM, kSleeps));
  EXPECT_TRUE(obeys_pending(SIGALRM, kSleeps));
}

TEST(Interrupts, ASignalThatTheProcessHandlesOrIgnoresIsNot) {
  EXPECT_FALSE(
      obeys_pending(SIGUSR1, "trap : USR1; echo ready; while :; do sleep 1; done", "bash"));
  EXPECT_FALSE(obeys_pending(SIGTERM, "trap '' TERM; echo ready; exec sleep 60"));
  EXPECT_FALSE(obeys_pending(SIGWINCH, kSleeps));
  EXPECT_FALSE(obeys_pending(0, kSleeps));
}

TEST(Interrupts, ASignalThatTheProcessBlocksIsNot) {
  const std::string blocks = "echo ready; exec env --block-signal=TERM sleep 60";
  EXPECT_FALSE(obeys_pending(SIGTERM, blocks));
  EXPECT_TRUE(obeys_pending(SIGALRM, blocks));
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
