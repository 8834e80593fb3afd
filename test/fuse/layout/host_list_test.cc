#include "fuse/layout/host_list.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace vpfs::fuse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> hosts(std::string_view list) {
  const Result<std::vector<std::string>> read = hosts_in(list);
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(std::vector<std::string>());
}

std::string error_of_list(std::string_view list) {
  const Result<std::vector<std::string>> read = hosts_in(list);
  return read ? "" : read.error().message;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(HostList, IsNamesAndRanges) {
  EXPECT_THAT(hosts(""), IsEmpty());
  EXPECT_THAT(hosts("n1"), ElementsAre("n1"));
  EXPECT_THAT(hosts("n1,n2.site.org"), ElementsAre("n1", "n2.site.org"));
  EXPECT_THAT(hosts("node[001-003,7]"), ElementsAre("node001", "node002", "node003", "node7"));
  EXPECT_THAT(hosts("a[9-11],b"), ElementsAre("a9", "a10", "a11", "b"));
  EXPECT_THAT(hosts("a[09-11]"), ElementsAre("a09", "a10", "a11"));
  EXPECT_THAT(hosts("r[1-2]n[0-1]-ib"), ElementsAre("r1n0-ib", "r1n1-ib", "r2n0-ib", "r2n1-ib"));
  EXPECT_THAT(hosts("[1-2][8-9,3]x[5]"),
              ElementsAre("18x5", "19x5", "13x5", "28x5", "29x5", "23x5"));
  EXPECT_THAT(hosts("[7],n[000000001]"), ElementsAre("7", "n000000001"));
}

TEST(HostList, AMistakeIsNamedWithItsPlace) {
  for (const char* const bad :
       {",", "n,", "a[", "a]", "a[]", "a[1-", "a[2-1]", "a[x]", "a[1-2", "a[1,,2]", "a[1,]",
        "a[4294967296]", "a[0000000001]", "n,,m", "a[1-2-3]", "a[[1]]", "a[1][", "a[-1]"}) {
    EXPECT_THAT(error_of_list(bad), HasSubstr("; expected ")) << bad;
  }
  EXPECT_EQ(error_of_list("n1,,n2"),
            "byte 3: the name of a host is empty; expected NAME or NAME[1-3,7]");
  EXPECT_EQ(error_of_list("n1,n[1-x]"),
            "byte 5: not a number or a range within brackets; expected [1-3,7] with at most 9 "
            "digits");
  EXPECT_EQ(error_of_list("n]"), "byte 1: ']' without a '['; expected NAME or NAME[1-3,7]");
}

TEST(HostList, HasBounds) {
  EXPECT_EQ(hosts("n[1-4096]").size(), 4096U);
  EXPECT_EQ(hosts("n[1-64]x[1-64]").size(), 4096U);
  for (const char* const many : {"n[1-4097]", "n[1-4096],m", "m,n[1-4096]", "n[1-64]x[1-65]",
                                 "n[0-999]x[0-999]y[0-999]", "n[0-999999999]"}) {
    EXPECT_THAT(error_of_list(many), HasSubstr("too many hosts; expected at most 4096")) << many;
  }
  EXPECT_EQ(hosts("[0-1][0-1][0-1]").size(), 8U);
  EXPECT_EQ(error_of_list("[0][0][0][0]"),
            "byte 9: too many brackets in a word; expected at most 3");
  EXPECT_EQ(hosts("a[0],b[0],c[0],d[0]").size(), 4U) << "of one word, not of the list";
  const std::string longest(255, 'a');
  EXPECT_EQ(hosts(longest).size(), 1U);
  EXPECT_THAT(error_of_list(longest + "a"), HasSubstr("too long; expected at most 255 bytes"));
  EXPECT_THAT(error_of_list(longest + "[1]"), HasSubstr("too long; expected at most 255 bytes"));
  // 256 names of 256 bytes are the 64 KiB.
  EXPECT_EQ(hosts(std::string(252, 'a') + "[100-355]").size(), 256U);
  EXPECT_THAT(error_of_list(std::string(252, 'a') + "[100-357]"),
              HasSubstr("too long together; expected at most 65536 bytes"));
}

// Each of these has killed a mount, or stopped it for seconds.
TEST(HostList, HostileListsAreRefusedAtOnce) {
  EXPECT_THAT(error_of_list(repeated("[0]", 43'600)), HasSubstr("too many brackets"));
  EXPECT_THAT(error_of_list(std::string(100'000, 'a') + "[0-65535]"), HasSubstr("too long"));
  EXPECT_THAT(error_of_list(std::string(20'000, 'a') + "[0-4095]"), HasSubstr("too long"));
  EXPECT_THAT(error_of_list("n[" + repeated("0,", 60'000) + "0]"), HasSubstr("too many hosts"));
  EXPECT_THAT(error_of_list("n[" + std::string(100'000, '0') + "]"), HasSubstr("9 digits"));
  EXPECT_THAT(error_of_list(repeated(",", 100'000)), HasSubstr("empty"));
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
