#include "base/log/log.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log/journal.h"
#include "base/log/log_file.h"
#include "net/descriptor.h"
#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class LogTest : public ::testing::Test {
 protected:
  LogTest() : before_(spdlog::default_logger()) {}
  ~LogTest() override {
    spdlog::flush_every(seconds(0));
    spdlog::set_default_logger(before_);
  }
  // Ends the log, as the end of the program does.
  void end() { spdlog::set_default_logger(before_); }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_.path() / name).string();
  }

  const test::TemporaryDirectory directory_;
  const std::shared_ptr<spdlog::logger> before_;  // the logger of other tests
};

TEST_F(LogTest, LinesOfAFileHaveProgramAndLevel) {
  const std::string file = path("log");
  ASSERT_TRUE(set_up_logging("vpfs-test", "info", file));
  spdlog::info("one");
  spdlog::error("two {}", 2);
  spdlog::debug("not shown");
  EXPECT_THAT(content(file), ::testing::MatchesRegex("[-0-9]+ [:.0-9]+ vpfs-test info: one\n"
                                                     "[-0-9]+ [:.0-9]+ vpfs-test error: two 2\n"));
}

TEST_F(LogTest, RenamedFileIsLeftAloneAfterReopening) {
  const std::string file = path("log");
  ASSERT_TRUE(set_up_logging("vpfs-test", "info", file));
  spdlog::info("one");
  std::filesystem::rename(file, file + ".1");
  spdlog::info("two");
  reopen_log();
  spdlog::info("three");
  EXPECT_THAT(content(file + ".1"), HasSubstr("two"));
  EXPECT_EQ(count(content(file + ".1"), "\n"), 2U);
  EXPECT_THAT(content(file), HasSubstr("three"));
  EXPECT_EQ(count(content(file), "\n"), 1U);
}

TEST_F(LogTest, FileIsContinuedAfterARestart) {
  const std::string file = path("log");
  for (const char* text : {"one", "two"}) {
    ASSERT_TRUE(set_up_logging("vpfs-test", "info", file));
    spdlog::info("{}", text);
  }
  EXPECT_EQ(count(content(file), "\n"), 2U);
}

TEST_F(LogTest, MissingDirectoryIsToldInOneLineAndStandardErrorGetsTheLog) {
  const std::string file = path("missing/log");
  CaptureStderr();
  ASSERT_TRUE(set_up_logging("vpfs-test", "info", file));
  for (int i = 0; i < 3; ++i) spdlog::info("message {}", i);
  std::filesystem::create_directory(path("missing"));
  reopen_log();
  spdlog::info("later");
  const std::string text = GetCapturedStderr();
  EXPECT_EQ(count(text, "log file " + file + ": No such file or directory"), 1U) << text;
  EXPECT_EQ(count(text, "message "), 3U);
  EXPECT_EQ(count(text, "\n"), 4U);
  EXPECT_THAT(content(file), HasSubstr("later"));
  EXPECT_THAT(content(file), HasSubstr("3 messages went to standard error"));
}

TEST_F(LogTest, FullDiskIsToldInOneLineAndStandardErrorGetsTheLog) {
  CaptureStderr();
  ASSERT_TRUE(set_up_logging("vpfs-test", "info", "/dev/full"));
  for (int i = 0; i < 3; ++i) spdlog::info("message {}", i);
  const std::string text = GetCapturedStderr();
  EXPECT_EQ(count(text, "log file /dev/full: No space left on device"), 1U) << text;
  EXPECT_EQ(count(text, "info: message "), 3U);
}

TEST_F(LogTest, WhatCannotBeOpenedIsToldInOneLineAndDoesNotWait) {
  for (const test::OddFile kind :
       {test::OddFile::fifo, test::OddFile::directory, test::OddFile::socket}) {
    const std::string file = path("odd");
    put_odd_file(kind, file);
    CaptureStderr();
    ASSERT_TRUE(set_up_logging("vpfs-test", "info", file));
    for (int i = 0; i < 3; ++i) spdlog::info("message {}", i);
    const std::string text = GetCapturedStderr();
    EXPECT_EQ(count(text, "log file " + file + ": is " + std::string(name_of(kind)) +
                              ", not a regular file; messages go to standard error"),
              1U)
        << text;
    EXPECT_EQ(count(text, "info: message "), 3U);
    end();
    std::filesystem::remove(file);
  }
}

TEST_F(LogTest, TargetChangesWhileTheProgramRuns) {
  ASSERT_TRUE(set_up_logging("vpfs-test", "info", path("one")));
  spdlog::info("first");
  ASSERT_TRUE(set_log_target(path("two")));
  spdlog::info("second");
  EXPECT_EQ(count(content(path("one")), "\n"), 1U);
  EXPECT_THAT(content(path("two")), HasSubstr("vpfs-test info: second"));
  EXPECT_FALSE(set_log_target(""));
  spdlog::info("third");
  EXPECT_THAT(content(path("two")), HasSubstr("third"));
}

TEST_F(LogTest, WarningsThatRepeatAreCountedAndToldAtTheEnd) {
  const std::string file = path("log");
  ASSERT_TRUE(set_up_logging("vpfs-test", "info", file));
  for (int i = 0; i < 1001; ++i) spdlog::warn("the server is away");
  EXPECT_EQ(count(content(file), "\n"), 1U);
  end();
  EXPECT_EQ(count(content(file), "\n"), 2U);
  EXPECT_THAT(content(file),
              HasSubstr("vpfs-test warning: the server is away (repeated 1,000 times in 1 s)\n"));
}

TEST_F(LogTest, InformationAndAnswersAreWrittenEachTime) {
  const std::string file = path("log");
  ASSERT_TRUE(set_up_logging("vpfs-test", "info", file));
  for (int i = 0; i < 3; ++i) {
    spdlog::info("reloaded");
    log_answer(spdlog::level::err, "reload failed");
    log_answer(spdlog::level::debug, "details");
  }
  EXPECT_EQ(count(content(file), "info: reloaded\n"), 3U);
  EXPECT_EQ(count(content(file), "error: reload failed\n"), 3U);
  EXPECT_EQ(count(content(file), "details"), 0U);
}

TEST_F(LogTest, UnknownLevelAndMissingJournalAreRefused) {
  EXPECT_FALSE(set_up_logging("vpfs-test", "loud"));
  const std::string socket = path("socket");
  EXPECT_EQ(check_journal(socket).error().message,
            "the log cannot go to the journal: this host has none (" + socket + ")");
  std::ofstream(socket) << "a file";
  EXPECT_FALSE(check_journal(socket));
}

TEST(LogFile, OpensAgainByItselfAfterAWhile) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path place = directory.path() / "missing";
  LogFile file((place / "log").string());
  TimePoint now = TimePoint(seconds(10));
  EXPECT_FALSE(file.append("one\n", now));
  std::filesystem::create_directory(place);
  EXPECT_FALSE(file.append("two\n", now + LogFile::kRetry / 2));
  EXPECT_TRUE(file.append("three\n", now + LogFile::kRetry));
  EXPECT_EQ(content(place / "log"), "three\n");
}

TEST(Journal, EntriesHaveThePriorityAndTheWholeMessage) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() / "socket";
  Journal journal(path);
  EXPECT_EQ(journal.send("vpfs-test", 4, "early").error().message,
            "the journal: No such file or directory");

  const net::Descriptor receiver(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(receiver.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_TRUE(journal.send("vpfs-test", 4, "two\nlines"));
  char entry[256] = {};
  const ssize_t size = ::recv(receiver.get(), entry, sizeof entry, MSG_DONTWAIT);
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string(entry, static_cast<std::size_t>(size)),
            "PRIORITY=4\nSYSLOG_IDENTIFIER=vpfs-test\nMESSAGE\n" +
                std::string("\x09\0\0\0\0\0\0\0", 8) + "two\nlines\n");

  ASSERT_TRUE(journal.send("vpfs-test", 4, "text", {{"JOBID", "4\n7"}, {"VPFS_RULE", ""}}));
  const ssize_t second = ::recv(receiver.get(), entry, sizeof entry, MSG_DONTWAIT);
  ASSERT_GT(second, 0);
  EXPECT_EQ(std::string(entry, static_cast<std::size_t>(second)),
            "PRIORITY=4\nSYSLOG_IDENTIFIER=vpfs-test\nJOBID\n" +
                std::string("\x03\0\0\0\0\0\0\0", 8) + "4\n7\nMESSAGE\n" +
                std::string("\x04\0\0\0\0\0\0\0", 8) + "text\n");

  const Result<void> sent = journal.send("vpfs-test", 4, std::string(64 << 20, 'x'));
  EXPECT_EQ(sent.error().message, "the journal: Message too long");
}

// A journal of the test's own, in a mount name space of a child process.
int log_to_journal() {
  if (::unshare(CLONE_NEWNS) != 0) return 77;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (::mount("tmpfs", "/run", "tmpfs", 0, nullptr) != 0) return 77;
  std::filesystem::create_directories("/run/systemd/journal");
  const int journal = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
  if (::bind(journal, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 1;
  if (!set_up_logging("vpfs-test", "info", "journal")) return 2;
  spdlog::warn("watch {}", "out");
  char entry[4096] = {};
  const ssize_t size = ::recv(journal, entry, sizeof entry, MSG_DONTWAIT);
  if (size <= 0) return 3;
  const std::string text(entry, static_cast<std::size_t>(size));
  if (!text.ends_with("watch out\n")) return 4;
  if (!text.contains("PRIORITY=4\n")) return 5;
  if (!text.contains("SYSLOG_IDENTIFIER=vpfs-test\n")) return 6;
  if (text.contains("VPFS_NAME")) return 7;
  set_log_name("stor0");
  log_about({.rule = "backup", .job = "47"}, spdlog::level::info, "a change");
  const ssize_t second = ::recv(journal, entry, sizeof entry, MSG_DONTWAIT);
  const std::string about(entry, static_cast<std::size_t>(std::max<ssize_t>(second, 0)));
  for (const char* each : {"VPFS_NAME\n", "stor0\n", "VPFS_RULE\n", "backup\n", "JOBID\n"}) {
    if (!about.contains(each)) return 8;
  }
  return about.ends_with("a change\n") ? 0 : 9;
}

TEST(LogJournal, GetsEntriesWithPriorityAndProgram) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(log_to_journal());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs root for a mount name space";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace vpfs
