#include "fuse/process_environment.h"

#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

// The environment of a program that was started with the variables, and A=1 at its end.
std::string environment_with(const test::Process& process) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text = environment_of(process.pid());
    // Before it becomes another program the process has the test's environment.
    if (variable_in(text, "VPFS_TEST_BIG")) break;
    ::usleep(10'000);
  }
  return text;
}

TEST(ProcessEnvironment, IsReadWhole) {
  const std::string value(50'000, 'v');
  const test::Process other({"sleep", "60"}, {{"VPFS_TEST_BIG", value}});
  const std::string text = environment_with(other);
  EXPECT_EQ(variable_in(text, "VPFS_TEST_BIG"), value);
  EXPECT_EQ(text.back(), '\0');
}

TEST(ProcessEnvironment, OfOneThatIsTooLongHalfAValueDoesNotCount) {
  const std::string value(100'000, 'v');
  const test::Process other({"env", "-i", "VPFS_TEST_BIG=" + value, "VPFS_TEST_NEXT=" + value,
                             "VPFS_TEST_OVER=" + value, "VPFS_TEST_LAST=1", "sleep", "60"});
  const std::string text = environment_with(other);
  EXPECT_EQ(text.size(),
            std::string("VPFS_TEST_BIG=VPFS_TEST_NEXT=").size() + 2 * value.size() + 2);
  EXPECT_EQ(variable_in(text, "VPFS_TEST_NEXT"), value);
  EXPECT_FALSE(variable_in(text, "VPFS_TEST_OVER"));
}

TEST(ProcessEnvironment, OfAProcessThatIsGoneIsEmpty) {
  test::Process other({"true"});
  const pid_t pid = other.pid();
  ASSERT_TRUE(other.wait());
  EXPECT_EQ(environment_of(pid), "");
}

}  // namespace
}  // namespace vpfs::fuse
