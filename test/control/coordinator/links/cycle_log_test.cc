#include "control/coordinator/links/cycle_log.h"

#include <chrono>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "test/support/process.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Collects what is logged.
class CollectedLog {
 public:
  CollectedLog() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  }
  ~CollectedLog() { spdlog::set_default_logger(before_); }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(CycleLog, HasALineForEachCycle) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() / "cycles.csv";
  {
    auto log = CycleLog::open(path);
    ASSERT_TRUE(log);
    (*log)->add({.cycle = 1,
                 .stages = 50,
                 .late = 2,
                 .total = 1500us,
                 .collect = 1ms,
                 .compute = 1234ns,
                 .enforce = 499us});
    (*log)->add({.cycle = 2, .stages = 50});
  }
  EXPECT_EQ(test::read_text(path),
            "cycle,stages,total_us,collect_us,compute_us,enforce_us,late\n"
            "1,50,1500.0,1000.0,1.2,499.0,2\n"
            "2,50,0.0,0.0,0.0,0.0,0\n");
}

TEST(CycleLog, AFullDiskEndsItWithOneLine) {
  const CollectedLog collected;
  auto log = CycleLog::open("/dev/full");
  ASSERT_TRUE(log);
  for (std::uint64_t cycle = 1; cycle < 10'000; ++cycle) (*log)->add({.cycle = cycle});
  log->reset();
  EXPECT_EQ(count(collected.text(), "the cycle log /dev/full: No space left on device"), 1U)
      << collected.text();
  EXPECT_EQ(count(collected.text(), "\n"), 1U) << collected.text();
}

TEST(CycleLog, AFullDiskThatShowsAtTheEndIsLoggedToo) {
  const CollectedLog collected;
  auto log = CycleLog::open("/dev/full");
  ASSERT_TRUE(log);
  (*log)->add({.cycle = 1});
  log->reset();
  EXPECT_EQ(count(collected.text(), "the cycle log /dev/full: No space left on device"), 1U);
}

TEST(CycleLog, AFileThatCannotBeMadeIsNamed) {
  const auto log = CycleLog::open("/none/cycles.csv");
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().message, HasSubstr("/none/cycles.csv: No such file"));
}

}  // namespace
}  // namespace vpfs::coordinator
