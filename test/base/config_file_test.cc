#include "base/config_file.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/process.h"

namespace vpfs {
namespace {

std::string problem_of(const std::string& path) {
  const Result<std::string> text = read_config_file(path);
  return text ? "none" : text.error().message;
}

// Runs as an unprivileged user if the tests run as root.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() == 0) changed_ = ::seteuid(65534) == 0;
  }
  ~AsNobody() {
    if (changed_) EXPECT_EQ(::seteuid(0), 0);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  bool changed_ = false;
};

TEST(ConfigFile, ItsTextIsReadWhole) {
  const test::TemporaryDirectory directory;
  const std::string text(100'000, 'a');
  EXPECT_EQ(read_config_file(directory.write("f.yaml", text)).value(), text);
}

TEST(ConfigFile, EachReasonWhyThereIsNoTextIsToldApart) {
  const test::TemporaryDirectory directory;
  const std::string folder = directory.path().string();
  const std::string empty = directory.write("empty.yaml", "");
  const std::string blank = directory.write("blank.yaml", " \n\t\r\n");
  EXPECT_EQ(problem_of(empty), empty + ": is empty");
  EXPECT_EQ(problem_of(blank), blank + ": is empty");
  EXPECT_EQ(problem_of(folder + "/none"),
            folder + "/none: cannot be read: No such file or directory");
  EXPECT_EQ(problem_of(empty + "/x"), empty + "/x: cannot be read: Not a directory");
  EXPECT_EQ(problem_of(folder), folder + ": is a directory, not a file");
}

TEST(ConfigFile, OneThatMayNotBeReadSaysSo) {
  const test::TemporaryDirectory directory;
  const std::string secret = directory.write("secret.yaml", "a: 1\n");
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  const AsNobody nobody;
  EXPECT_EQ(problem_of(secret), secret + ": cannot be read: Permission denied");
}

TEST(ConfigFile, OneWithoutAnEndIsNotRead) {
  EXPECT_EQ(problem_of("/dev/zero"), "/dev/zero: is larger than 16 MiB, so it is no configuration");
}

}  // namespace
}  // namespace vpfs
