#include "proxy/virtual_pfs.h"

#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

const std::function<void(AppId, Share)> kNobody = [](AppId, Share) {};

TEST(VirtualPfsTable, DefaultIsAlwaysThereAndFirst) {
  VirtualPfsTable table({{.name = "a", .share = {.weight = 3}}}, 10);
  EXPECT_EQ(table[AppId{0}].name, "default");
  EXPECT_EQ(table.find_or_make({"default", "default"}, kNobody), AppId{0});
  EXPECT_EQ(table.find_or_make({"a", "a"}, kNobody), AppId{1});
  EXPECT_EQ(table[AppId{1}].share.weight, 3U);
}

TEST(VirtualPfsTable, ATemplateMakesOneForEachNameWithItsShare) {
  VirtualPfsTable table({{.name = "job-{jobid}", .share = {.weight = 5}}}, 10);
  int made = 0;
  const auto count = [&](AppId, Share share) {
    ++made;
    EXPECT_EQ(share.weight, 5U);
  };
  const AppId one = table.find_or_make({"job-1", "job-{jobid}"}, count);
  const AppId two = table.find_or_make({"job-2", "job-{jobid}"}, count);
  EXPECT_NE(one, two);
  EXPECT_EQ(table.find_or_make({"job-1", "job-{jobid}"}, count), one);
  EXPECT_EQ(made, 2);
}

TEST(VirtualPfsTable, BeyondTheLimitNewNamesAreDefault) {
  VirtualPfsTable table({{.name = "job-{jobid}", .share = {}}}, 1);
  EXPECT_NE(table.find_or_make({"job-1", "job-{jobid}"}, kNobody), AppId{0});
  const std::size_t before = table.size();
  AppId last{};
  for (int i = 2; i < 10; ++i) {
    last = table.find_or_make({"job-" + std::to_string(i), "job-{jobid}"}, kNobody);
  }
  EXPECT_EQ(last, AppId{0});
  EXPECT_LE(table.size(), before + 1);
  EXPECT_GT(table.refused(), 0U);
}

}  // namespace
}  // namespace vpfs::proxy
