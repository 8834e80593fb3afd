#include "stage/book/composer.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/stage/book/driver.h"

namespace vpfs::stage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Composer, AnEmptyBookGivesTheConfigurationOfTheFile) {
  BookDriver driver;
  const Composer::Composed composed = driver.composed();
  EXPECT_THAT(composed.suspended, IsEmpty());
  EXPECT_EQ(composed.config.virtual_pfs, driver.file.virtual_pfs);
  EXPECT_EQ(composed.config.rules.size(), 2U);
}

TEST(Composer, ALiveRuleThatDoesNotFitTheFileAnyMoreIsSuspendedAndTheOthersAreNot) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  ASSERT_EQ(driver.refusal(start_rule("b", {"vpfs=bulk"})), "");
  ASSERT_EQ(driver.refusal(start_rule("c")), "");
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"weight=8"}}), "");
  Composer composer(&plain_rule);
  const Composer::Composed before = composer.compose(driver.file, driver.book.state());
  EXPECT_THAT(before.suspended, IsEmpty());

  Config file;  // without the virtual PFSes
  file.rules.push_back({.name = "a", .virtual_pfs = "default"});
  composer.forget();
  const Composer::Composed after = composer.compose(file, driver.book.state());
  EXPECT_THAT(
      after.suspended,
      ElementsAre(Suspended{"climate", RuleOrigin::administrator, "NAME",
                            "the configuration file has no virtual PFS of this name any more"},
                  Suspended{"a", RuleOrigin::administrator, "NAME",
                            "the configuration file has a rule of this name too"},
                  Suspended{"b", RuleOrigin::administrator, "vpfs", "'bulk' is not declared"}));
  ASSERT_EQ(after.config.rules.size(), 2U);
  EXPECT_EQ(after.config.rules[0].name, "c");
  EXPECT_EQ(newly_suspended(before.suspended, after.suspended).size(), 3U);
  EXPECT_THAT(newly_suspended(after.suspended, after.suspended), IsEmpty());
  EXPECT_EQ(composer.compose(driver.file, driver.book.state()).suspended, before.suspended)
      << "they are back with what they need";
}

TEST(Composer, AVirtualPfsOfTheFileThatALiveRuleDeclaresSuspendsTheRule) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  ASSERT_EQ(driver.refusal(start_rule("b", {"vpfs=a"})), "");
  driver.file.virtual_pfs.push_back({.name = "a", .share = {.weight = 77}});
  const Composer::Composed composed = driver.composed();
  ASSERT_EQ(composed.suspended.size(), 1U);
  EXPECT_EQ(composed.suspended[0].text, "there is another virtual PFS of this name");
  EXPECT_EQ(composed.config.rules.front().name, "b") << "it sends to the file's";
  EXPECT_EQ(driver.share_of("a").weight, 77U);
}

TEST(Composer, OnlyRulesThatAreNewAreRead) {
  BookDriver driver;
  for (int rule = 0; rule < 100; ++rule) {
    ASSERT_EQ(driver.refusal(start_rule("r" + std::to_string(rule), {"weight=2"})), "");
  }
  Composer composer(&plain_rule);
  (void)composer.compose(driver.file, driver.book.state());
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "r7", .words = {"weight=3"}}), "");
  const int before = plain_rules_read();
  const Composer::Composed composed = composer.compose(driver.file, driver.book.state());
  EXPECT_EQ(plain_rules_read() - before, 1);
  EXPECT_EQ(composed.config.rules.size(), 102U);
  EXPECT_EQ(composed.config.virtual_pfs.size(), 102U);
  composer.forget();
  (void)composer.compose(driver.file, driver.book.state());
  EXPECT_EQ(plain_rules_read() - before, 101);
}

TEST(Composer, ACoordinatorsRulesComeLastOfTheLiveOnes) {
  BookDriver driver;
  StartRule coordinators = start_rule("site");
  coordinators.origin = RuleOrigin::coordinator;
  ASSERT_EQ(driver.refusal(coordinators), "");
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  EXPECT_THAT(driver.rules(), ElementsAre("a", "site", "climate weight=2", "nightly vpfs=bulk"));
  EXPECT_EQ(driver.book.state().version, 1U) << "it is in no version";
  EXPECT_EQ(driver.replayed().state(), driver.book.state());
}

TEST(Composer, WordsOfAShareGiveTheShare) {
  const VirtualPfsConfig share = {
      .name = "x",
      .share = {.weight = 3, .rate = {1536 * kKiB}, .operations = 5, .burst = {kGiB}, .min = {17}}};
  const auto same = changed_share(share, nullptr, {}, Config{}, &plain_rule);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->share, share);
}

}  // namespace
}  // namespace vpfs::stage
