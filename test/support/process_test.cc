#include "test/support/process.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace vpfs::test {
namespace {

TEST(Process, CapturesOutputErrorsAndExitCode) {
  Process shell({"sh", "-c", "echo out; echo err >&2; exit 3"});
  const auto exit = shell.wait();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 3);
  EXPECT_EQ(shell.output(), "out\n");
  EXPECT_EQ(shell.errors(), "err\n");
}

TEST(Process, AddsToTheEnvironment) {
  Process shell({"sh", "-c", "echo $ADDED"}, {{"ADDED", "yes"}});
  ASSERT_TRUE(shell.wait());
  EXPECT_EQ(shell.output(), "yes\n");
}

TEST(Process, WaitsForALineOfARunningProgram) {
  Process shell({"sh", "-c", "echo ready; exec sleep 100"});
  EXPECT_TRUE(shell.wait_for_line("ready"));
  EXPECT_TRUE(shell.running());
  EXPECT_EQ(shell.stop().signal, SIGTERM);
  EXPECT_FALSE(shell.running());
}

TEST(Process, StopsWaitingForALineWhenTheProgramEnds) {
  Process shell({"true"});
  EXPECT_FALSE(shell.wait_for_line("never", 60s));
}

TEST(Process, ReportsAProgramThatCannotBeStarted) {
  Process nothing({"/nonexistent/program"});
  EXPECT_EQ(nothing.wait()->code, 127);
  EXPECT_NE(nothing.errors().find("/nonexistent/program"), std::string::npos);
}

TEST(ReservedPort, GivesDifferentPortsAndRows) {
  const ReservedPort one;
  const ReservedPort other;
  EXPECT_NE(one.number(), other.number());
  const auto row = ReservedPort::in_a_row(3);
  EXPECT_EQ(row[0].number() + 2, row[2].number());
}

TEST(TemporaryDirectory, IsRemovedWithItsContents) {
  std::filesystem::path path;
  {
    const TemporaryDirectory directory;
    path = directory.path();
    EXPECT_EQ(read_text(directory.write("file", "text")), "text");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace vpfs::test
