// What a stage tells its successor of the requests that it keeps.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/stage.h"
#include "test/stage/stage_rig.h"

namespace vpfs::stage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SavingTest : public StageRig {
 protected:
  static Config config_of(const std::string& name) {
    Config config;
    config.scheduler.depth.requests = 1;
    config.virtual_pfs = {{.name = name, .share = {}}};
    config.rules = {{.name = "all", .virtual_pfs = name}};
    return config;
  }
  Place place(const std::string& name) {
    return find({.virtual_pfs = name, .declared_name = name, .rule = 0U, .exempt = false});
  }
  // The stage that requests arrive at from now on. The one before goes on with what it has.
  std::unique_ptr<Stage> succeed(const Config& config) {
    const SavedState saved = stage_->save(now_);
    std::unique_ptr<Stage> before = std::move(stage_);
    make(config);
    stage_->restore(saved, now_);
    stage_->restore_schedulers(saved, now_);
    return before;
  }
  void end_at(Stage& before, Held& io) { before.end(io, {.moved = {kSize}}, now_); }
};

TEST_F(SavingTest, ARequestThatStaysCountsWhereItsVirtualPfsIs) {
  make(config_of("a"));
  Held& stays = arrive(place("a"));
  ASSERT_THAT(let_go(), ElementsAre(&stays));
  const std::unique_ptr<Stage> before = succeed(config_of("a"));
  Held& next = arrive(place("a"));
  EXPECT_THAT(let_go(), IsEmpty()) << "the depth is 1";
  EXPECT_FALSE(before->save_changes(now_));
  end_at(*before, stays);
  const auto changes = before->save_changes(now_);
  ASSERT_TRUE(changes);
  stage_->take_changes(*changes, now_);
  EXPECT_THAT(let_go(), ElementsAre(&next));
  EXPECT_EQ(stage_->virtual_pfs().counters(AppId{1}).done.all().requests, 1U);
  EXPECT_EQ(stage_->virtual_pfs().retired().counters.done.all().requests, 0U);
  EXPECT_FALSE(before->save_changes(now_));
  end(next);
}

TEST_F(SavingTest, WithoutItsVirtualPfsItCountsAmongTheRetired) {
  make(config_of("a"));
  Held& stays = arrive(place("a"));
  ASSERT_THAT(let_go(), SizeIs(1));
  const std::unique_ptr<Stage> before = succeed(config_of("b"));
  end_at(*before, stays);
  const auto changes = before->save_changes(now_);
  ASSERT_TRUE(changes);
  stage_->take_changes(*changes, now_);
  EXPECT_EQ(stage_->virtual_pfs().counters(AppId{1}).done.all().requests, 0U);
  EXPECT_EQ(stage_->virtual_pfs().retired().counters.done.all().requests, 1U);
  EXPECT_EQ(stage_->virtual_pfs().retired().counters.done.all().bytes, kSize);
}

}  // namespace
}  // namespace vpfs::stage
