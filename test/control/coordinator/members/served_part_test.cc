#include "control/coordinator/members/served_part.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/coordinator/members/messages.h"

namespace vpfs::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

members::View view_of_two(std::uint64_t epoch) {
  return {.epoch = epoch,
          .members = {{.name = "tcp:a:1", .stage_addresses = {"tcp:a:2"}},
                      {.name = "tcp:b:1", .stage_addresses = {"tcp:b:2", "unix:/b.sock"}}}};
}

class ServedPartTest : public ::testing::Test {
 protected:
  // A stage of the other one.
  [[nodiscard]] static std::string not_own() {
    for (int i = 0;; ++i) {
      const std::string stage = "s" + std::to_string(i);
      if (members::owner_of(stage, view_of_two(1))->name == "tcp:b:1") return stage;
    }
  }

  ServedPart part_{"tcp:a:1", {"tcp:a:2"}};
};

TEST_F(ServedPartTest, BeforeAViewItServesNoStage) {
  const auto why = part_.why_not("s0", true);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), control::Error::UNAVAILABLE);
  EXPECT_THAT(why->addresses(), ElementsAre());
  EXPECT_FALSE(part_.takes_part());
}

TEST_F(ServedPartTest, AStageOfAnotherOneIsToldItsAddresses) {
  ASSERT_FALSE(part_.take(to_message(view_of_two(7))));
  EXPECT_TRUE(part_.takes_part());
  const auto why = part_.why_not(not_own(), true);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->text(), HasSubstr("tcp:b:1"));
  EXPECT_THAT(why->addresses(), ElementsAre("tcp:b:2", "unix:/b.sock"));
}

TEST_F(ServedPartTest, OneThatIsNotInTheViewServesNone) {
  members::View view = view_of_two(7);
  view.members.erase(view.members.begin());
  ASSERT_FALSE(part_.take(to_message(view)));
  EXPECT_FALSE(part_.takes_part());
  for (const char* const stage : {"s0", "s1", "s2", "s3"}) EXPECT_TRUE(part_.why_not(stage, false));
}

TEST_F(ServedPartTest, OneThatIsCutOffSendsStagesAwayThatDial) {
  members::View alone = view_of_two(7);
  alone.members.pop_back();
  ASSERT_FALSE(part_.take(to_message(alone)));
  EXPECT_FALSE(part_.why_not("s0", true));
  part_.set_cut_off(true);
  EXPECT_TRUE(part_.why_not("s0", true));
  EXPECT_FALSE(part_.why_not("s0", false)) << "others dial that one with a later term";
  part_.set_cut_off(false);
  EXPECT_FALSE(part_.why_not("s0", true));
}

TEST_F(ServedPartTest, AViewIsNotTakenForAnotherOfTheSameEpoch) {
  ASSERT_FALSE(part_.take(to_message(view_of_two(7))));
  members::View other = view_of_two(7);
  other.members.pop_back();
  const auto why = part_.take(to_message(other));
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), control::Error::OUTDATED);
}

TEST_F(ServedPartTest, AnEarlierViewIsNotTaken) {
  ASSERT_FALSE(part_.take(to_message(view_of_two(7))));
  const auto why = part_.take(to_message(view_of_two(6)));
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), control::Error::OUTDATED);
  EXPECT_EQ(part_.view().epoch, 7U);
  // It was told before: the answer was lost.
  EXPECT_FALSE(part_.take(to_message(view_of_two(7))));
}

TEST_F(ServedPartTest, AnEpochThatCannotBeATermIsNotTaken) {
  for (const std::uint64_t epoch : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const auto why = part_.take(to_message(view_of_two(epoch)));
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code(), control::Error::INVALID);
  }
  EXPECT_EQ(part_.view().epoch, 0U);
}

TEST_F(ServedPartTest, ItKnowsTheCostModelThatItWasTold) {
  control::MemberView told = to_message(view_of_two(7));
  told.set_cost_model("cost");
  ASSERT_FALSE(part_.take(told));
  EXPECT_EQ(part_.cost_model(), "cost");
}

TEST(MemberMessages, AViewComesBackAsItWas) {
  const members::View view = view_of_two(7);
  EXPECT_EQ(view_of(to_message(view)), view);
}

}  // namespace
}  // namespace vpfs::coordinator
