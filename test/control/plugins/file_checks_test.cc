#include "control/plugins/file_checks.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/process.h"

namespace vpfs::control {
namespace {

using ::testing::HasSubstr;

class FileChecksTest : public ::testing::Test {
 protected:
  FileChecksTest() {
    std::filesystem::create_directory(folder());
    mode(folder(), 0755);
    std::ofstream(file()) << "content";
    mode(file(), 0755);
  }
  void mode(const std::string& path, ::mode_t to) { ASSERT_EQ(::chmod(path.c_str(), to), 0); }
  [[nodiscard]] std::string top() const {
    return std::filesystem::canonical(scratch_.path()).string();
  }
  [[nodiscard]] std::string folder() const { return top() + "/folder"; }
  [[nodiscard]] std::string file() const { return folder() + "/file"; }

  test::TemporaryDirectory scratch_;
};

std::string problem_of(const std::string& path) {
  const auto checked = check_trusted(path);
  return checked ? "" : checked.error().message;
}

TEST_F(FileChecksTest, AFileThatOnlyItsOwnerCanWriteIsTrusted) {
  const auto checked = check_trusted(file());
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_EQ(checked->path, file());
}

TEST_F(FileChecksTest, AFileThatIsWrittenAnewIsAnother) {
  const auto before = check_trusted(file());
  std::filesystem::last_write_time(
      file(), std::filesystem::last_write_time(file()) + std::chrono::seconds(1));
  EXPECT_NE(before.value(), check_trusted(file()).value());
  EXPECT_EQ(check_trusted(file()).value(), check_trusted(file()).value());
}

TEST_F(FileChecksTest, ALinkIsJudgedByWhatItLeadsTo) {
  std::filesystem::create_symlink(file(), top() + "/link");
  EXPECT_EQ(check_trusted(top() + "/link").value().path, file());
  mode(file(), 0646);
  EXPECT_EQ(problem_of(top() + "/link"),
            file() + " can be written by others than its owner (mode 0646): chmod go-w " + file());
}

TEST_F(FileChecksTest, AFolderThatOthersCanWriteIsRefused) {
  mode(folder(), 0775);
  EXPECT_EQ(problem_of(file()), file() + " could be replaced: " + folder() +
                                    " can be written by others than its owner (mode 0775): "
                                    "chmod go-w " +
                                    folder());
  mode(folder(), 01777);
  EXPECT_EQ(problem_of(file()), "") << "as /tmp is";
}

TEST_F(FileChecksTest, AFileOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(::chown(file().c_str(), 12345, 0), 0);
  EXPECT_EQ(problem_of(file()), file() + " belongs to user 12345: expected root");
  ASSERT_EQ(::chown(file().c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(folder().c_str(), 12345, 0), 0);
  EXPECT_THAT(problem_of(file()), HasSubstr("could be replaced: " + folder() + " belongs to"));
}

TEST_F(FileChecksTest, WhatIsNotAFileIsRefused) {
  EXPECT_EQ(problem_of(folder()), folder() + " is a directory");
  EXPECT_EQ(problem_of("/dev/null"), "/dev/null is not a file");
  EXPECT_EQ(problem_of(folder() + "/none"), folder() + "/none: No such file or directory");
  EXPECT_EQ(problem_of(file() + "/below"), file() + "/below: Not a directory");
  EXPECT_EQ(problem_of("file"), "\"file\" is not an absolute path");
  EXPECT_EQ(problem_of(""), "\"\" is not an absolute path");
}

}  // namespace
}  // namespace vpfs::control
