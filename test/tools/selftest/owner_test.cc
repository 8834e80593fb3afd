#include "tools/selftest/owner.h"

#include <gtest/gtest.h>

namespace vpfs::selftest {
namespace {

TEST(SelftestOwner, IsReadBackFromACondition) {
  const LoadProcess owner = {.host = "node-7", .pid = 4711};
  const std::string condition = "hint.jobid={vpfs-selftest-a " + to_value(owner) + "}";
  EXPECT_EQ(owner_of(condition), owner);
}

TEST(SelftestOwner, IsNotInOtherConditions) {
  for (const char* condition :
       {"", "jobid=a", "jobid=vpfs-selftest-a", "jobid=vpfs-selftest.", "jobid=vpfs-selftest.host",
        "jobid=vpfs-selftest.host.", "jobid=vpfs-selftest.host.x", "jobid=vpfs-selftest.host.-3"}) {
    EXPECT_EQ(owner_of(condition), std::nullopt) << condition;
  }
}

}  // namespace
}  // namespace vpfs::selftest
