#include "proxy/shown_identities.h"

#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

Belonging in(std::uint32_t app) {
  Belonging who;
  who.place.id = {.app = AppId{app}, .generation = 1};
  return who;
}

class ShownIdentitiesTest : public ::testing::Test {
 protected:
  void saw(std::uint32_t uid, std::uint32_t app = 1, IoKind kind = IoKind::read,
           const std::string& directory = "") {
    shown_.saw({.kind = kind, .uid = uid, .directory = directory}, in(app),
               [this]() -> std::optional<std::string_view> {
                 ++asked_;
                 return jobid_;
               });
  }
  [[nodiscard]] std::uint64_t all() const {
    std::uint64_t sum = 0;
    for (const auto& row : shown_.rows()) sum += row.requests;
    return sum;
  }

  ShownIdentities shown_;
  std::optional<std::string_view> jobid_ = "4711";
  int asked_ = 0;
};

TEST_F(ShownIdentitiesTest, EqualRequestsShareARowAndTheirJobIsAskedForOnce) {
  for (int i = 0; i < 5; ++i) saw(7);
  ASSERT_EQ(shown_.rows().size(), 1U);
  EXPECT_EQ(shown_.rows()[0].requests, 5U);
  EXPECT_EQ(shown_.rows()[0].jobid, "4711");
  EXPECT_EQ(asked_, 1);
}

TEST_F(ShownIdentitiesTest, ARequestThatBelongsElsewhereHasARowOfItsOwn) {
  saw(7, 1);
  saw(7, 2);
  saw(8, 2);
  EXPECT_EQ(shown_.rows().size(), 3U);
}

TEST_F(ShownIdentitiesTest, AlternatingIdentitiesKeepTheirRows) {
  for (int i = 0; i < 100; ++i) saw(static_cast<std::uint32_t>(i % 3));
  ASSERT_EQ(shown_.rows().size(), 3U);
  EXPECT_EQ(all(), 100U);
  EXPECT_EQ(asked_, 3);
}

TEST_F(ShownIdentitiesTest, TheOldestRowGoesWhenThereAreTooMany) {
  for (std::uint32_t uid = 0; uid < ShownIdentities::kMost; ++uid) saw(uid);
  EXPECT_EQ(shown_.rows().size(), 8U);
  saw(100);
  EXPECT_EQ(shown_.rows().size(), 8U);
  for (const auto& row : shown_.rows()) EXPECT_NE(row.uid, 0U);
  saw(100);
  saw(0);  // comes again, in place of uid 1
  std::size_t found = 0;
  for (const auto& row : shown_.rows()) {
    EXPECT_NE(row.uid, 1U);
    if (row.uid == 100U) EXPECT_EQ(row.requests, 2U);
    if (row.uid == 0U || row.uid == 100U) ++found;
  }
  EXPECT_EQ(found, 2U);
}

TEST_F(ShownIdentitiesTest, TheRowHasTheKindOfItsLastRequest) {
  saw(7, 1, IoKind::read);
  saw(7, 1, IoKind::write);
  ASSERT_EQ(shown_.rows().size(), 1U);
  EXPECT_EQ(shown_.rows()[0].kind, IoKind::write);
}

TEST_F(ShownIdentitiesTest, LongTextsAreShortened) {
  const std::string longest(10'000, 'x');
  jobid_ = longest;
  saw(7, 1, IoKind::read, longest);
  EXPECT_LE(shown_.rows()[0].jobid.size(), 128U);
  EXPECT_LE(shown_.rows()[0].directory.size(), 128U);
}

TEST_F(ShownIdentitiesTest, ARequestWithoutAJobHasNone) {
  jobid_.reset();
  saw(7);
  EXPECT_EQ(shown_.rows()[0].jobid, "");
}

}  // namespace
}  // namespace vpfs::proxy
