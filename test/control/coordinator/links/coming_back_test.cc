#include "control/coordinator/links/coming_back.h"

#include <string>

#include <gmock/gmock.h>

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr TimePoint kNow(100s);

TEST(ComingBack, EndsWaitsWhenTheStageJoinsOrItsTimeIsOver) {
  ComingBack back;
  back.left("ds1", kNow);
  back.left("ds2", kNow + 500ms);
  EXPECT_THAT(back.names(), ElementsAre("ds1", "ds2"));
  back.wait("ds1", kNow, [] {});
  back.wait("ds2", kNow, [] {});
  EXPECT_THAT(back.joined("ds3"), IsEmpty());
  EXPECT_THAT(back.joined("ds1"), SizeIs(1));
  EXPECT_THAT(back.give_up(kNow + 1400ms), IsEmpty());
  EXPECT_THAT(back.give_up(kNow + 1500ms), SizeIs(1));
  EXPECT_THAT(back.names(), IsEmpty());
}

TEST(ComingBack, WaitsForOneThatIsAboutToLeave) {
  ComingBack back;
  back.wait("ds1", kNow, [] {});
  EXPECT_THAT(back.give_up(kNow + 999ms), IsEmpty());
  EXPECT_THAT(back.give_up(kNow + 1s), SizeIs(1));
}

TEST(ComingBack, NamesNoneWhereVeryManyLeaveAtOnce) {
  ComingBack back;
  for (std::size_t i = 0; i < ComingBack::kMost; ++i) back.left(std::to_string(i), kNow);
  EXPECT_THAT(back.names(), SizeIs(ComingBack::kMost));
  back.left("one more", kNow);
  EXPECT_THAT(back.names(), IsEmpty());
}

}  // namespace
}  // namespace vpfs::coordinator
