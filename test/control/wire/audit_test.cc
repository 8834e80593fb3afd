#include "control/wire/audit.h"

#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/control/wire/manual_clock.h"
#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

const Caller kAlice{.name = "alice (uid 1001)", .from = "unix", .rights = Rights::change};

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(test::read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

class AuditTest : public ::testing::Test {
 protected:
  test::TemporaryDirectory folder_;
  std::string path_ = folder_.path() / "audit.json";
  test::ManualClock clock_;
};

TEST_F(AuditTest, HasALineForEachCommand) {
  Audit audit(clock_);
  ASSERT_TRUE(audit.open(path_));
  audit.record(kAlice, "rule start a", "ok", false);
  audit.record(kAlice, "rule stop \"a\"\n{}\xff", "INVALID: x", false);
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["who"], "alice (uid 1001)");
  EXPECT_EQ(lines[0]["from"], "unix");
  EXPECT_EQ(lines[0]["command"], "rule start a");
  EXPECT_EQ(lines[0]["result"], "ok");
  EXPECT_THAT(lines[0]["at"].get<std::string>(),
              ::testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"));
  EXPECT_EQ(lines[1]["command"], "rule stop \"a\"\n{}\xef\xbf\xbd");
  EXPECT_EQ(audit.lines(), 2U);
}

TEST_F(AuditTest, IsReadableByItsGroupAlone) {
  Audit audit(clock_);
  ASSERT_TRUE(audit.open(path_));
  struct stat file = {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U & ~0640U, 0U);
}

TEST_F(AuditTest, GoesOnInANewFileAfterARotationAndAppendsToOneThatIsThere) {
  Audit audit(clock_);
  ASSERT_TRUE(audit.open(path_));
  audit.record(kAlice, "one", "ok", false);
  std::filesystem::rename(path_, path_ + ".1");
  audit.record(kAlice, "two", "ok", false);
  audit.reopen();
  audit.record(kAlice, "three", "ok", false);
  ASSERT_TRUE(audit.open(path_));
  audit.record(kAlice, "four", "ok", false);
  EXPECT_EQ(lines_of(path_ + ".1").size(), 2U);
  EXPECT_EQ(lines_of(path_).size(), 2U);
}

TEST_F(AuditTest, AFileThatCannotBeOpenedIsAnErrorAndTheOldOneStays) {
  Audit audit(clock_);
  ASSERT_TRUE(audit.open(path_));
  const auto opened = audit.open(folder_.path() / "no" / "file");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, ::testing::HasSubstr("control.audit: "));
  audit.record(kAlice, "one", "ok", false);
  EXPECT_EQ(lines_of(path_).size(), 1U);
}

TEST_F(AuditTest, AFileThatCannotBeOpenedAnewIsWrittenOn) {
  Audit audit(clock_);
  audit.reopen();  // there is none
  ASSERT_TRUE(audit.open(path_));
  std::filesystem::rename(path_, path_ + ".1");
  std::filesystem::create_directory(path_);
  audit.reopen();
  audit.record(kAlice, "one", "ok", false);
  EXPECT_EQ(lines_of(path_ + ".1").size(), 1U);
}

TEST_F(AuditTest, LinesThatADiskHasNoRoomForAreCounted) {
  Audit audit(clock_);
  ASSERT_TRUE(audit.open("/dev/full"));
  audit.record(kAlice, "one", "ok", false);
  audit.record(kAlice, "two", "ok", false);
  EXPECT_EQ(audit.lost(), 2U);
  EXPECT_EQ(audit.lines(), 0U);
  ASSERT_TRUE(audit.open(path_));
  audit.record(kAlice, "three", "ok", false);
  EXPECT_EQ(audit.lines(), 1U);
}

TEST_F(AuditTest, WhatCannotBeWrittenIsNamedAndDoesNotWait) {
  for (const test::OddFile kind :
       {test::OddFile::fifo, test::OddFile::directory, test::OddFile::socket}) {
    put_odd_file(kind, path_);
    Audit audit(clock_);
    const auto opened = audit.open(path_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message, "control.audit: " + path_ + ": is " +
                                          std::string(name_of(kind)) + ", not a regular file");
    std::filesystem::remove(path_);
  }
}

TEST_F(AuditTest, ACommandDoesNotWaitForTheReaderOfAFifo) {
  put_odd_file(test::OddFile::fifo, path_);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  Audit audit(clock_);
  ASSERT_TRUE(audit.open(path_));
  for (int i = 0; i < 2000 && audit.lost() == 0; ++i) audit.record(kAlice, "one", "ok", false);
  EXPECT_GT(audit.lost(), 0U) << "the FIFO is full";
  ::close(reader);
}

// Lets the process's files grow to so many bytes, and writes beyond fail instead of a signal.
class FileLimit {
 public:
  explicit FileLimit(rlim_t most) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = most;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  sighandler_t signal_;
  rlimit before_ = {};
};

TEST_F(AuditTest, APartOfALineDoesNotSpoilTheNext) {
  Audit audit(clock_);
  ASSERT_TRUE(audit.open(path_));
  audit.record(kAlice, "one", "ok", false);
  {
    const FileLimit limit(std::filesystem::file_size(path_) + 20);
    audit.record(kAlice, "lost", "ok", false);
  }
  EXPECT_EQ(audit.lost(), 1U);
  audit.record(kAlice, "three", "ok", false);
  std::istringstream text(test::read_text(path_));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(nlohmann::json::parse(lines[2])["command"], "three");
}

TEST_F(AuditTest, AFloodOfRefusedRequestsHasFewLinesAndANumber) {
  Audit audit(clock_, {.burst = 3, .each_second = 1});
  ASSERT_TRUE(audit.open(path_));
  for (int i = 0; i < 100; ++i) audit.record(kAlice, "bad", "refused", true);
  audit.record(kAlice, "good", "ok", false);
  auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[3]["result"], "97 refused requests have no line");
  EXPECT_EQ(lines[4]["command"], "good");
  clock_.advance(2s);
  for (int i = 0; i < 100; ++i) audit.record(kAlice, "bad", "refused", true);
  EXPECT_EQ(lines_of(path_).size(), 7U);
}

}  // namespace
}  // namespace vpfs::control
