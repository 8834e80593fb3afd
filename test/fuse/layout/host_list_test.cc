#include "fuse/layout/host_list.h"

#include <gmock/gmock.h>

namespace vpfs::fuse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostList, IsNamesAndRanges) {
  EXPECT_THAT(hosts_in("n1"), ElementsAre("n1"));
  EXPECT_THAT(hosts_in("n1,n2.site.org"), ElementsAre("n1", "n2.site.org"));
  EXPECT_THAT(hosts_in("node[001-003,7]"), ElementsAre("node001", "node002", "node003", "node7"));
  EXPECT_THAT(hosts_in("a[9-11],b"), ElementsAre("a9", "a10", "a11", "b"));
  EXPECT_THAT(hosts_in("r[1-2]n[0-1]-ib"), ElementsAre("r1n0-ib", "r1n1-ib", "r2n0-ib", "r2n1-ib"));
}

TEST(HostList, ThatIsNoneHasNobody) {
  for (const char* const bad : {"", ",", "a[", "a]", "a[]", "a[1-", "a[2-1]", "a[x]", "a[1-2",
                                "a[1,,2]", "a[4294967296]", "n,,m"}) {
    EXPECT_THAT(hosts_in(bad), IsEmpty()) << bad;
  }
}

TEST(HostList, HasBounds) {
  EXPECT_EQ(hosts_in("n[1-65536]").size(), 65536U);
  EXPECT_THAT(hosts_in("n[1-65537]"), IsEmpty());
  EXPECT_THAT(hosts_in("n[0-999]x[0-999]y[0-999]"), IsEmpty());
}

TEST(HostList, NamesOfOneHostAreTheSame) {
  EXPECT_TRUE(is_same_host("n1", "N1"));
  EXPECT_TRUE(is_same_host("n1", "n1.site.org"));
  EXPECT_TRUE(is_same_host("10.0.0.1", "10.0.0.1"));
  EXPECT_FALSE(is_same_host("n1", "n10"));
  EXPECT_FALSE(is_same_host("n1.here", "n1.there"));
  EXPECT_FALSE(is_same_host("10.0.0.1", "10"));
  EXPECT_FALSE(is_same_host("", ""));
}

}  // namespace
}  // namespace vpfs::fuse
