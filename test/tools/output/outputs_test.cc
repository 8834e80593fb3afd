#include "tools/output/outputs.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vpfs::output {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Outputs : public testing::Test {
 protected:
  Outputs() { fs::create_directories(directory_); }
  ~Outputs() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }
  [[nodiscard]] std::string make(const std::string& name) const {
    std::ofstream(path(name)) << "before";
    return path(name);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::vector<fs::path> all() const {
    return {fs::directory_iterator(directory_), fs::directory_iterator()};
  }
  static std::string problem(const std::string& json, const std::string& input) {
    return problem_of({{.option = "--json", .path = json}, {.option = "--svg", .path = ""}},
                      {input});
  }

  const fs::path directory_ =
      fs::temp_directory_path() / ("vpfs-output-files-" + std::to_string(::getpid()));
};

TEST_F(Outputs, AnInputIsNotReplacedByAnyOfItsNames) {
  const std::string input = make("busy.json");
  fs::create_symlink("busy.json", path("link"));
  fs::create_hard_link(input, path("hard"));
  EXPECT_EQ(problem(input, input),
            "--json: " + input + " would replace " + input + ", which is read\n");
  for (const char* const name : {"link", "hard", "./busy.json"}) {
    EXPECT_THAT(problem(path(name), input), HasSubstr("is read")) << name;
    EXPECT_THAT(problem(input, path(name)), HasSubstr("is read")) << name;
  }
  EXPECT_EQ(problem(make("other"), input), "");
  EXPECT_EQ(problem(path("none"), input), "");
  EXPECT_EQ(problem("/dev/null", "/dev/null"), "") << "it has nothing to lose";
}

TEST_F(Outputs, TwoOutputsAreTwoFiles) {
  const auto both = [](const std::string& json, const std::string& svg) {
    return problem_of({{.option = "--json", .path = json}, {.option = "--svg", .path = svg}}, {});
  };
  EXPECT_THAT(both(path("new"), path("./new")), HasSubstr("is the file of --json"));
  const std::string there = make("there");
  fs::create_symlink("there", path("link"));
  EXPECT_THAT(both(there, path("link")), HasSubstr("is the file of --json"));
  EXPECT_EQ(both(there, path("new")), "");
  EXPECT_EQ(both("", ""), "");
}

TEST_F(Outputs, ALinkStaysALinkAndNothingElseIsLeft) {
  const std::string target = make("target");
  fs::create_symlink("target", path("link"));
  ASSERT_TRUE(write_whole(path("link"), "after"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read("target"), "after");
  EXPECT_THAT(all(), SizeIs(2));
  const ::mode_t mask = ::umask(0027);
  ASSERT_TRUE(write_whole(path("new"), "1"));
  ::umask(mask);
  EXPECT_EQ(fs::status(path("new")).permissions(), fs::perms{0640});
}

TEST_F(Outputs, ADeviceIsWrittenAsItIs) {
  EXPECT_TRUE(write_whole("/dev/null", "text"));
  const auto full = write_whole("/dev/full", "text");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "/dev/full: cannot be written: No space left on device");
}

TEST_F(Outputs, AnErrorSaysWhyAndLeavesWhatWasThere) {
  const auto missing = write_whole(path("no/file"), "text");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            path("no/file") + ": cannot be written: No such file or directory");
  // The new file has no room, and the old one is not touched.
  const std::string old = make("old");
  struct ::rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct ::rlimit small = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto cut = write_whole(old, "a longer text");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("File too large"));
  EXPECT_EQ(read("old"), "before");
  EXPECT_THAT(all(), SizeIs(1));
}

}  // namespace
}  // namespace vpfs::output
