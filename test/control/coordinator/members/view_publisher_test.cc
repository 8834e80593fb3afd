#include "control/coordinator/members/view_publisher.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "control/coordinator/members/messages.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr std::uint64_t kTerm = 2 * members::kEpochsOfATerm;

// Members that answer when the test says so.
class Members final : public StageRequests {
 public:
  struct Asked {
    std::uint32_t member = 0;
    control::MemberView view;
    Done done;
  };

  void ask(allocation::StageId stage, control::Envelope& request, Duration /*patience*/,
           Done done) override {
    asked.push_back({stage.index, request.member_view(), std::move(done)});
  }
  [[nodiscard]] const StageHello& hello(allocation::StageId stage) const override {
    return hellos.at(stage.index);
  }
  [[nodiscard]] std::vector<AbsentStage> absent() const override { return {}; }
  [[nodiscard]] std::vector<std::string> just_left() const override { return {}; }
  void wait_for(const std::string& /*name*/, Back /*back*/) override {}

  std::vector<Asked> asked;
  std::map<std::uint32_t, StageHello> hellos;
};

class ViewPublisherTest : public ::testing::Test {
 protected:
  ViewPublisherTest() { views_.use(members_); }

  void join(std::uint32_t number, const std::string& name, const members::View& told = {}) {
    StageHello hello{.name = name};
    hello.member = std::make_shared<const MemberHello>(MemberHello{.view = to_message(told)});
    members_.hellos[number] = hello;
    views_.joined({number}, hello);
  }
  void leave(std::uint32_t number) { views_.left({number}, members_.hellos.at(number)); }
  void run_for(Duration time) {
    context_.restart();
    context_.run_for(time);
  }
  void answer(std::size_t which, bool takes) {
    control::Envelope answer;
    if (takes) {
      answer.mutable_ack();
    } else {
      *answer.mutable_error() = control::make_error(control::Error::OUTDATED, "epoch", "no");
    }
    const auto done = members_.asked.at(which).done;
    done(answer);
  }
  // Both of the last view are there, so the first view is made at once.
  void begin_with_two() {
    const members::View last{.epoch = kTerm - 3, .members = {{.name = "a"}, {.name = "b"}}};
    join(0, "a", last);
    EXPECT_TRUE(members_.asked.empty());
    join(1, "b", last);
    ASSERT_EQ(members_.asked.size(), 2U);
  }

  asio::io_context context_{1};
  SystemClock clock_;
  Members members_;
  int used_up_ = 0;
  ViewPublisher views_{context_, clock_, kTerm, [this] { ++used_up_; }};
};

TEST_F(ViewPublisherTest, EachMemberIsToldTheView) {
  begin_with_two();
  EXPECT_EQ(members_.asked[0].member, 0U);
  EXPECT_EQ(members_.asked[1].member, 1U);
  EXPECT_EQ(members_.asked[0].view.epoch(), kTerm + 1);
  EXPECT_EQ(members_.asked[0].view.members_size(), 2);
  answer(0, true);
  answer(1, true);
  run_for(300ms);
  EXPECT_EQ(members_.asked.size(), 2U) << "they have heard";
}

TEST_F(ViewPublisherTest, OneThatDoesNotTakeItIsToldAgain) {
  begin_with_two();
  answer(0, true);
  answer(1, false);
  run_for(150ms);
  ASSERT_EQ(members_.asked.size(), 3U);
  EXPECT_EQ(members_.asked[2].member, 1U);
  EXPECT_EQ(members_.asked[2].view.epoch(), kTerm + 1);
}

TEST_F(ViewPublisherTest, OneThatIsBusyIsToldTheNextViewAfterItsAnswer) {
  begin_with_two();
  answer(0, true);
  leave(1);
  run_for(350ms);
  ASSERT_EQ(members_.asked.size(), 3U);
  EXPECT_EQ(members_.asked[2].view.members_size(), 1);
  join(1, "b");
  run_for(250ms);
  ASSERT_EQ(members_.asked.size(), 4U) << "b is told on its new connection; neither has answered";
  answer(2, true);
  ASSERT_EQ(members_.asked.size(), 5U);
  EXPECT_EQ(members_.asked[4].member, 0U);
  EXPECT_EQ(members_.asked[4].view.epoch(), kTerm + 3);
}

TEST_F(ViewPublisherTest, AnAnswerOfAConnectionBeforeCountsForNothing) {
  begin_with_two();
  leave(1);
  join(1, "b");
  ASSERT_EQ(members_.asked.size(), 3U);
  answer(1, true);
  answer(2, false);
  run_for(150ms);
  ASSERT_EQ(members_.asked.size(), 4U);
  EXPECT_EQ(members_.asked[3].member, 1U);
}

TEST_F(ViewPublisherTest, TheCostModelOfMostMembersIsToldToAll) {
  begin_with_two();
  answer(0, true);
  answer(1, true);
  views_.learn_cost_model({0}, "cost");
  views_.learn_cost_model({1}, "another");
  ASSERT_EQ(members_.asked.size(), 4U);
  EXPECT_EQ(members_.asked[2].view.cost_model(), "cost");
  EXPECT_EQ(members_.asked[3].view.cost_model(), "cost");
  EXPECT_EQ(views_.cost_model(), "cost") << "as many have another, so it stays";
  // A wrong stage decides nothing once it has gone.
  views_.learn_cost_model({0}, "");
  EXPECT_EQ(views_.cost_model(), "another");
  leave(1);
  EXPECT_EQ(views_.cost_model(), "");
}

TEST_F(ViewPublisherTest, AfterItsEndNothingIsTold) {
  begin_with_two();
  views_.stop();
  answer(0, false);
  leave(1);
  run_for(400ms);
  EXPECT_EQ(members_.asked.size(), 2U);
  EXPECT_EQ(used_up_, 0);
}

}  // namespace
}  // namespace vpfs::coordinator
