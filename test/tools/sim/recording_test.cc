#include "tools/sim/recording.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace vpfs::sim_tool {
namespace {

using namespace std::chrono_literals;

class SimRecording : public testing::Test {
 protected:
  ~SimRecording() override { std::filesystem::remove(file_); }

  std::string problem(const std::string& text, const std::string& name = "a") {
    std::ofstream(file_) << text;
    const auto found = read_recording(file_, name);
    return found ? "" : found.error().message.substr(file_.string().size());
  }
  static std::string with_timeline(const std::string& entries) {
    return R"({"applications": [{"name": "a", "timeline": [)" + entries + "]}]}";
  }

  const std::filesystem::path file_ = std::filesystem::temp_directory_path() /
                                      ("vpfs-recording-" + std::to_string(::getpid()) + ".json");
};

TEST_F(SimRecording, ATimelineBecomesRequests) {
  std::ofstream(file_) << with_timeline(
      R"({"t": 0.5, "ops_per_s": 100.0}, {"t": 1.5, "ops_per_s": 7})");
  const auto found = read_recording(file_, "a");
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[0].until, 500ms);
  EXPECT_EQ((*found)[0].requests, 50U);
  EXPECT_EQ((*found)[1].until, 1500ms);
  EXPECT_EQ((*found)[1].requests, 7U);
}

TEST_F(SimRecording, AFileThatIsNotAResultIsNamed) {
  EXPECT_EQ(problem("{"), " is not JSON");
  EXPECT_EQ(problem("[]"), " has no timeline of an application a");
  EXPECT_EQ(problem(R"({"applications": [{"name": "a"}]})"),
            " has no timeline of an application a");
  EXPECT_EQ(problem(R"({"applications": [{"name": 5}, 7]})"),
            " has no timeline of an application a");
  EXPECT_EQ(problem(with_timeline(""), "b"), " has no timeline of an application b");
  for (const char* const entry : {"3", R"({"t": 1})", R"({"t": "1", "ops_per_s": 1})",
                                  R"({"t": -1, "ops_per_s": 1})", R"({"t": 1e300, "ops_per_s": 1})",
                                  R"({"t": 1, "ops_per_s": -1})", R"({"t": 1, "ops_per_s": 1e300})",
                                  R"({"t": 1, "ops_per_s": 1}, {"t": 1, "ops_per_s": 1})"}) {
    EXPECT_TRUE(problem(with_timeline(entry)).ends_with("of the timeline of a cannot be")) << entry;
  }
  std::filesystem::remove(file_);
  EXPECT_EQ(read_recording(file_, "a").error().message, file_.string() + " cannot be read");
}

}  // namespace
}  // namespace vpfs::sim_tool
