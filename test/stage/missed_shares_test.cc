// How a stage finds the virtual PFSes that miss a share. share_watch_test.cc tests what counts as
// that.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "test/stage/stage_rig.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

class MissedShares : public StageRig {
 protected:
  MissedShares() {
    Config config;
    config.policy = "sfq";
    config.scheduler.depth.requests = 1;
    config.cost.per_request = {};
    config.virtual_pfs = {{.name = "a", .share = {.weight = 2}}, {.name = "b", .share = {}}};
    make(config);
  }
  Place named(const std::string& name) {
    return find({.virtual_pfs = name, .declared_name = name});
  }
  ShareWatch::Verdict share(const Place& place) {
    std::vector<CounterRow> rows(stage_->rows());
    EXPECT_EQ(stage_->copy_counters(0, rows, now_), rows.size());
    return rows[std::to_underlying(place.id.app)].share;
  }
  // Each takes the server 10 ms, and the next one of its virtual PFS comes when another one has
  // been sent.
  void serve(int requests) {
    for (int i = 0; i < requests; ++i) {
      now_ += 10ms;
      const Place whose = {.id = at_server_->virtual_pfs(), .rule = {}, .shadow = {}};
      end(*at_server_);
      at_server_ = let_go().at(0);
      arrive(whose);
      EXPECT_THAT(let_go(), IsEmpty());
    }
  }
  void use(const std::string& policy) {
    Config config = config_;
    config.policy = policy;
    reconfigure(config);
  }
  // The next request of `few` comes when one of `many` has been sent, so they take turns.
  void alternate(const Place& few, const Place& many) {
    for (int i = 0; i < 4; ++i) arrive(many);
    at_server_ = let_go().at(0);
    arrive(few);
    EXPECT_THAT(let_go(), IsEmpty());
  }

  Held* at_server_ = nullptr;
};

// They alternate, although a has twice the weight.
TEST_F(MissedShares, AreToldOfFlowsThatKeepNoQueue) {
  const Place a = named("a");
  const Place b = named("b");
  alternate(a, b);
  EXPECT_FALSE(share(a).keeps_no_queue);
  EXPECT_FALSE(share(b).keeps_no_queue);
  serve(100);
  EXPECT_TRUE(share(a).keeps_no_queue);
  EXPECT_FALSE(share(b).keeps_no_queue);
  EXPECT_EQ(share(a).in_flight, 1s);
  EXPECT_EQ(share(a).without_queue, 500ms);
}

// A coordinator would take a counter that goes back for a lie.
TEST_F(MissedShares, NoCounterGoesBackWhenAPolicyWithoutWeightsTakesOver) {
  const Place a = named("a");
  const Place b = named("b");
  alternate(a, b);
  (void)share(a);
  serve(100);
  ASSERT_TRUE(share(a).keeps_no_queue);
  use("fifo");
  serve(100);
  EXPECT_FALSE(share(a).keeps_no_queue);
  EXPECT_EQ(share(a).in_flight, 1s);
  use("sfq");
  EXPECT_FALSE(share(a).keeps_no_queue);
  serve(100);
  EXPECT_TRUE(share(a).keeps_no_queue);
  EXPECT_EQ(share(a).in_flight, 1990ms) << "the new scheduler was first asked after 10 ms";
}

}  // namespace
}  // namespace vpfs::stage
