#include "base/named_file.h"

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs {
namespace {

// What both functions say about the path; "" if they take it.
std::string open_problem_of(const std::string& path) {
  const Result<int> opened = open_regular_file(path, O_RDWR | O_CREAT, 0600);
  if (opened) ::close(*opened);
  const Result<void> checked = check_readable_file(path);
  EXPECT_EQ(opened.has_value(), checked.has_value());
  if (opened) return "";
  if (!opened.error().code) EXPECT_EQ(opened.error().message, checked.error().message);
  return opened.error().message;
}

TEST(NamedFile, ARegularFileIsTakenOrMade) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(open_problem_of(directory.write("there", "text")), "");
  const std::string fresh = (directory.path() / "fresh").string();
  EXPECT_EQ(open_problem_of(fresh), "");
  EXPECT_TRUE(std::filesystem::is_regular_file(fresh));
}

TEST(NamedFile, WhatIsNotARegularFileIsNamedAndDoesNotWait) {
  const test::TemporaryDirectory directory;
  int number = 0;
  for (const test::OddFile kind : test::kOddFiles) {
    const std::string path = (directory.path() / std::to_string(++number)).string();
    put_odd_file(kind, path);
    const std::string expected =
        path + ": is " + std::string(name_of(kind)) + ", not a regular file";
    EXPECT_EQ(open_problem_of(path), expected);
  }
}

TEST(NamedFile, OneThatMayNotBeOpenedSaysWhy) {
  const test::TemporaryDirectory directory;
  const std::string secret = directory.write("secret", "text");
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  const test::AsNobody nobody;
  EXPECT_EQ(open_problem_of(secret), secret + ": cannot be opened: Permission denied");
  const std::string nowhere = (directory.path() / "none" / "f").string();
  EXPECT_EQ(open_problem_of(nowhere), nowhere + ": cannot be opened: No such file or directory");
}

TEST(NamedFile, AFolderThatIsMissingOrIsNoneIsNamed) {
  const test::TemporaryDirectory directory;
  const std::string here = directory.path().string();
  EXPECT_EQ(problem_of_place(here + "/s.sock"), std::nullopt);
  EXPECT_EQ(problem_of_place("s.sock"), std::nullopt);
  EXPECT_EQ(problem_of_place("/s.sock"), std::nullopt);
  EXPECT_EQ(problem_of_place(""), std::nullopt);
  EXPECT_EQ(problem_of_place(here + "/a/b/s.sock"), "the folder '" + here + "/a/b' does not exist");
  const std::string file = directory.write("file", "text");
  EXPECT_EQ(problem_of_place(file + "/s.sock"), "'" + file + "' is a regular file, not a folder");
  EXPECT_EQ(problem_of_place(file + "/a/s.sock"),
            "the folder '" + file + "/a' cannot be used: Not a directory");
}

TEST(NamedFile, AFolderWhereNothingCanBeMadeIsNamed) {
  const test::TemporaryDirectory directory;
  const std::string here = directory.path().string();
  directory.write("there", "text");
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0555));
  {
    const test::AsNobody nobody;
    EXPECT_EQ(problem_of_place(here + "/s.sock"),
              "the folder '" + here + "' is not writable: Permission denied");
  }
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
}

// As after a start by hand as root.
TEST(NamedFile, WhatAnotherUserHasMadeIsNamed) {
  const uid_t self = ::geteuid();
  if (self != 0) GTEST_SKIP() << "needs root";
  const test::TemporaryDirectory directory;
  const std::string here = directory.path().string();
  const std::string theirs = directory.write("journal", "text");
  const std::string lock = directory.write("s.sock.lock", "");
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0777));
  EXPECT_EQ(problem_of_place(theirs), std::nullopt);
  EXPECT_EQ(problem_of_place(here + "/s.sock"), std::nullopt);
  const test::AsNobody nobody;
  const auto problem = [&](const std::string& file) {
    return fmt::format("'{}', which uid {} owns, cannot be written by uid {}: Permission denied",
                       file, self, ::geteuid());
  };
  EXPECT_EQ(problem_of_place(theirs), problem(theirs));
  EXPECT_EQ(problem_of_place(here + "/s.sock"), problem(lock));
}

}  // namespace
}  // namespace vpfs
