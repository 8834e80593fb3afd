#include "control/host/processors.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

#include "test/support/process.h"

namespace vpfs::control {
namespace {

// Files as they are below /proc and /sys.
class ProcessorsTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_.path() / name).parent_path());
    root_.write(name, text);
  }
  void in_group(const std::string& group) const {
    write("proc/self/cgroup", "3:cpu:/old\n0::/" + group + "\n");
  }
  [[nodiscard]] Processors here() const { return Processors::here(root_.path()); }

  const test::TemporaryDirectory root_;
  const std::size_t all_ = Processors::here(root_.path()).count;
};

TEST_F(ProcessorsTest, WithoutAGroupThoseOfTheAffinityCount) {
  EXPECT_GE(all_, 1U);
  std::size_t pinned = 0;
  std::thread([&] {
    cpu_set_t set;
    ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    int last = 0;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) last = i;
    }
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
    pinned = here().count;
  }).join();
  EXPECT_EQ(pinned, 1U);
  EXPECT_FALSE(here().has_quota);
}

TEST_F(ProcessorsTest, TheQuotaOfItsGroupBoundsThem) {
  in_group("system.slice/vpfs.service");
  write("sys/fs/cgroup/system.slice/vpfs.service/cpu.max", "20000 100000\n");
  EXPECT_EQ(here().count, 1U);
  EXPECT_TRUE(here().has_quota);
}

TEST_F(ProcessorsTest, SoDoesThatOfAGroupAboveIt) {
  in_group("a/b/c");
  write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  EXPECT_TRUE(here().has_quota);
  in_group("");
  EXPECT_FALSE(here().has_quota);
  write("sys/fs/cgroup/cpu.max", "1000 100000\n");
  EXPECT_TRUE(here().has_quota) << "that of a container's own tree";
}

TEST_F(ProcessorsTest, AQuotaThatBoundsNothingIsNone) {
  in_group("a");
  for (const char* text :
       {"max 100000\n", "1000000000 100000\n", "", "x y\n", "0 100000\n", "-1 5\n", "100000 0\n"}) {
    write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_FALSE(here().has_quota) << text;
    EXPECT_EQ(here().count, all_) << text;
  }
}

}  // namespace
}  // namespace vpfs::control
