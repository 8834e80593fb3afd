#include "base/config_file.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/process.h"

namespace vpfs {
namespace {

std::string problem_of(const std::string& path) {
  ConfigErrors errors(path);
  EXPECT_FALSE(read_config_text(errors));
  return errors.to_string();
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
  ConfigErrors errors(directory.write("f.yaml", text));
  EXPECT_EQ(read_config_text(errors), text);
  EXPECT_TRUE(errors.empty());
}

TEST(ConfigFile, EachReasonWhyThereIsNoTextIsToldApart) {
  const test::TemporaryDirectory directory;
  const std::string folder = directory.path().string();
  const std::string empty = directory.write("empty.yaml", "");
  const std::string blank = directory.write("blank.yaml", " \n\t\r\n");
  EXPECT_EQ(problem_of(empty), empty + ": is empty\n");
  EXPECT_EQ(problem_of(blank), blank + ": is empty\n");
  EXPECT_EQ(problem_of(folder + "/none"),
            folder + "/none: cannot be read: No such file or directory\n");
  EXPECT_EQ(problem_of(empty + "/x"), empty + "/x: cannot be read: Not a directory\n");
  EXPECT_EQ(problem_of(folder), folder + ": is a directory, not a file\n");
}

TEST(ConfigFile, OneThatMayNotBeReadSaysSo) {
  const test::TemporaryDirectory directory;
  const std::string secret = directory.write("secret.yaml", "a: 1\n");
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  const AsNobody nobody;
  EXPECT_EQ(problem_of(secret), secret + ": cannot be read: Permission denied\n");
}

struct Word {
  std::string word;
};

std::optional<Word> load_word(ConfigErrors& errors) {
  return load_config(errors, [](std::string_view text, ConfigErrors& found) {
    Word config;
    ConfigReader(text, found).get("word", &config.word);
    return config;
  });
}

TEST(ConfigFile, IsLoadedOnlyWithoutErrors) {
  const test::TemporaryDirectory directory;
  ConfigErrors good(directory.write("good.yaml", "word: yes\n"));
  EXPECT_EQ(load_word(good)->word, "yes");
  ConfigErrors bad(directory.write("bad.yaml", "word: yes\nwrod: no\n"));
  EXPECT_FALSE(load_word(bad));
  EXPECT_TRUE(bad.to_string().starts_with(bad.file() + ":2: wrod: "));
  ConfigErrors missing(directory.path().string() + "/none.yaml");
  EXPECT_FALSE(load_word(missing));
  EXPECT_EQ(missing.lines().size(), 1U);
}

TEST(ConfigFile, OneWithoutAnEndIsNotRead) {
  EXPECT_EQ(problem_of("/dev/zero"),
            "/dev/zero: is larger than 16 MiB, so it is no configuration\n");
}

}  // namespace
}  // namespace vpfs
