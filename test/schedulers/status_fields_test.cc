#include "schedulers/status_fields.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

StatusFields fields(std::int64_t count, Duration longest, bool kept) {
  StatusFields made;
  made.add({.name = "tokens", .value = std::int64_t{7}});
  made.add({.name = "count", .value = count, .join = StatusField::Join::sum});
  made.add({.name = "longest", .value = longest, .join = StatusField::Join::largest});
  made.add({.name = "kept", .value = kept, .join = StatusField::Join::every});
  return made;
}

TEST(StatusFields, WhatSeveralClassesSayIsJoinedAsEachFieldWants) {
  StatusFields all = fields(2, 5ms, true);
  all.join(fields(3, 4ms, true));
  EXPECT_EQ(all.integer("tokens"), 7);
  EXPECT_EQ(all.integer("count"), 5);
  EXPECT_EQ(all.get<Duration>("longest"), Duration(5ms));
  EXPECT_EQ(all.get<bool>("kept"), true);
  all.join(fields(1, 6ms, false));
  EXPECT_EQ(all.integer("count"), 6);
  EXPECT_EQ(all.get<Duration>("longest"), Duration(6ms));
  EXPECT_EQ(all.get<bool>("kept"), false);
}

TEST(StatusFields, WhatOnlyOneKnowsIsThereInItsOrder) {
  StatusFields all;
  EXPECT_TRUE(all.empty());
  all.join(fields(2, 5ms, true));
  StatusFields more;
  more.add({.name = "source", .value = std::string_view("measured")});
  all.join(more);
  all.join({});
  std::vector<std::string> names;
  for (const StatusField& field : all) names.emplace_back(field.name);
  EXPECT_THAT(names, ElementsAre("tokens", "count", "longest", "kept", "source"));
  EXPECT_EQ(all.get<std::string_view>("source"), "measured");
}

TEST(StatusFields, AFieldOfAnotherNameOrKindIsNotThere) {
  const StatusFields all = fields(2, 5ms, true);
  EXPECT_EQ(all.integer("longest"), std::nullopt);
  EXPECT_EQ(all.integer("lent"), std::nullopt);
}

}  // namespace
}  // namespace vpfs
