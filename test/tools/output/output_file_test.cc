#include "tools/output/output_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/process.h"

namespace vpfs::output {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;

class OutputFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::string place(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  static void make(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  // What is wrong with it; "": nothing.
  static std::string written(const std::string& path, const std::string& text) {
    OutputFile file;
    if (const auto opened = file.open(path, 0600); !opened) return opened.error().message;
    file.write(text);
    const auto finished = file.finish();
    return finished ? "" : finished.error().message;
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

 private:
  test::TemporaryDirectory directory_;
};

TEST_F(OutputFiles, IsWrittenByOneRunAtATime) {
  OutputFile first;
  ASSERT_TRUE(first.open(place("a"), 0600));
  EXPECT_THAT(written(place("a"), "second"), EndsWith("a: another run writes it now"));
  first.write("first");
  ASSERT_TRUE(first.finish());
  EXPECT_EQ(content(place("a")), "first");
  EXPECT_EQ(written(place("a"), "second"), "");
  EXPECT_EQ(content(place("a")), "second");
}

TEST_F(OutputFiles, DoesNotTakeWhatHasTakenItsPlace) {
  OutputFile file;
  ASSERT_TRUE(file.open(place("a"), 0600));
  fs::remove(place("a.unfinished"));
  make(place("a.unfinished"), "of another run");
  const auto finished = file.finish();
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().message, EndsWith("a: another run writes it now"));
  EXPECT_FALSE(fs::exists(place("a")));
  EXPECT_EQ(content(place("a.unfinished")), "of another run");
}

TEST_F(OutputFiles, ReplacesOneThatIsThereOnceItIsWhole) {
  make(place("a"), "old");
  OutputFile file;
  ASSERT_TRUE(file.open(place("a"), 0600));
  file.write("new");
  EXPECT_EQ(content(place("a")), "old");
  ASSERT_TRUE(file.finish());
  EXPECT_EQ(content(place("a")), "new");
  EXPECT_EQ(fs::status(place("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFiles, LeavesNothingWithoutAnEnd) {
  {
    OutputFile file;
    ASSERT_TRUE(file.open(place("a"), 0600));
    file.write("half");
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(OutputFiles, ALinkStaysOne) {
  make(place("real"), "old");
  fs::create_symlink("real", place("link"));
  EXPECT_EQ(written(place("link"), "new"), "");
  EXPECT_TRUE(fs::is_symlink(place("link")));
  EXPECT_EQ(content(place("real")), "new");
}

TEST_F(OutputFiles, ADeviceOrAPipeStaysOne) {
  EXPECT_EQ(written("/dev/null", "text"), "");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_FALSE(fs::exists("/dev/null.unfinished"));
  ASSERT_EQ(::mkfifo(place("pipe").c_str(), 0600), 0);
  std::fstream reader(place("pipe"), std::ios::in | std::ios::out);  // so that nothing waits
  EXPECT_EQ(written(place("pipe"), "text\n"), "");
  EXPECT_TRUE(fs::is_fifo(place("pipe")));
  std::string line;
  std::getline(reader, line);
  EXPECT_EQ(line, "text");
}

TEST_F(OutputFiles, ALinkBesideItIsNotFollowed) {
  make(place("victim"), "untouched");
  fs::create_symlink(place("victim"), place("a.unfinished"));
  EXPECT_EQ(written(place("a"), "secret"), "");
  EXPECT_EQ(content(place("victim")), "untouched");
  EXPECT_EQ(content(place("a")), "secret");
  EXPECT_EQ(files(), 2U);
}

TEST_F(OutputFiles, AFullDiskIsAnErrorThatNamesTheFile) {
  EXPECT_EQ(written("/dev/full", "text"), "/dev/full: cannot be written: No space left on device");
  EXPECT_THAT(written(place("missing/a"), "text"),
              EndsWith("missing/a: cannot be written: No such file or directory"));
}

}  // namespace
}  // namespace vpfs::output
