#include "base/config_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs {
namespace {

std::string text_problem_of(const std::string& path) {
  ConfigErrors errors(path);
  EXPECT_FALSE(read_config_text(errors));
  return errors.to_string();
}

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
  EXPECT_EQ(text_problem_of(empty), empty + ": is empty\n");
  EXPECT_EQ(text_problem_of(blank), blank + ": is empty\n");
  EXPECT_EQ(text_problem_of(folder + "/none"),
            folder + "/none: cannot be read: No such file or directory\n");
  EXPECT_EQ(text_problem_of(empty + "/x"), empty + "/x: cannot be read: Not a directory\n");
  EXPECT_EQ(text_problem_of(folder), folder + ": is a directory, not a file\n");
}

TEST(ConfigFile, OneThatMayNotBeReadSaysSo) {
  const test::TemporaryDirectory directory;
  const std::string secret = directory.write("secret.yaml", "a: 1\n");
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  const test::AsNobody nobody;
  EXPECT_EQ(text_problem_of(secret), secret + ": cannot be read: Permission denied\n");
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

TEST(ConfigFile, OneThatIsTooLargeIsNotRead) {
  const test::TemporaryDirectory directory;
  const std::string large = directory.write("large.yaml", "a: 1\n");
  std::filesystem::resize_file(large, std::uintmax_t{1} << 40);
  EXPECT_EQ(text_problem_of(large),
            large + ": is larger than 16 MiB, so it is not a configuration\n");
}

TEST(ConfigFile, WhatIsNeitherFileNorPipeIsNamedAndDoesNotWait) {
  const test::TemporaryDirectory directory;
  int number = 0;
  for (const test::OddFile kind : test::kOddFiles) {
    const std::string path = (directory.path() / std::to_string(++number)).string();
    put_odd_file(kind, path);
    const std::string expected = kind == test::OddFile::fifo
                                     ? "is a FIFO that nothing is written to"
                                     : "is " + std::string(name_of(kind)) + ", not a file";
    EXPECT_EQ(text_problem_of(path), path + ": " + expected + "\n");
  }
}

TEST(ConfigFile, APipeIsReadToItsEnd) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string text(200'000, 'a');
  std::thread writer([&] {
    std::string_view left = text;
    while (!left.empty()) {
      const ssize_t size =
          ::write(ends[1], left.data(), std::min<std::size_t>(left.size(), 50'000));
      if (size <= 0) break;
      left.remove_prefix(static_cast<std::size_t>(size));
    }
    ::close(ends[1]);
  });
  ConfigErrors errors("/dev/fd/" + std::to_string(ends[0]));
  EXPECT_EQ(read_config_text(errors), text) << errors.to_string();
  ::close(ends[0]);
  writer.join();
}

}  // namespace
}  // namespace vpfs
