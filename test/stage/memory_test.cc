// The memory that a virtual PFS takes.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "stage/stage.h"

namespace vpfs::stage {
namespace {

constexpr std::size_t kCount = 10'000;

std::size_t allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

class StageMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(StageMemory, AnUnusedVirtualPfsTakesOneKibibyteAtMost) {
  Config config;
  config.policy = GetParam();
  config.virtual_pfs = {{.name = "job-{jobid}", .share = {.weight = 2}}};
  config.most_virtual_pfs = kCount;
  Stage stage(config, {});
  const std::size_t before = allocated();
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::string jobid = std::to_string(1'000'000 + i);
    (void)stage.find({.virtual_pfs = "job-" + jobid,
                      .declared_name = "job-{jobid}",
                      .nodes = 64,
                      .jobid = jobid},
                     {});
  }
  ASSERT_EQ(stage.rows(), kCount + 1);
  const std::size_t each = (allocated() - before) / kCount;
  std::cout << GetParam() << ": " << each << " bytes for each of " << kCount << "\n";
  EXPECT_LE(each, 1024U);
}

INSTANTIATE_TEST_SUITE_P(Policies, StageMemory,
                         ::testing::Values("sfq", "tbf", "adaptbf", "edf", "fifo"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace vpfs::stage
