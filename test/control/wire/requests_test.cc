#include "control/wire/requests.h"

#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using ::testing::AnyOf;

TEST(Requests, AllMessagesButAnswersAndWhatAStageSaysAreInTheTable) {
  const google::protobuf::OneofDescriptor& bodies = *Envelope::descriptor()->oneof_decl(0);
  ASSERT_EQ(bodies.name(), "body");
  for (int i = 0; i < bodies.field_count(); ++i) {
    const std::string& name = bodies.field(i)->name();
    Envelope message;
    message.GetReflection()->MutableMessage(&message, bodies.field(i));
    if (find_request(message) != nullptr) {
      EXPECT_FALSE(name.ends_with("_reply")) << name;
    } else if (!name.ends_with("_reply")) {
      EXPECT_THAT(name, AnyOf("hello", "error", "ack", "flows", "report"));
    }
  }
}

Envelope rule(Rule::Action action, bool dry_run = false) {
  Envelope request;
  request.mutable_rule()->set_action(action);
  request.mutable_rule()->set_dry_run(dry_run);
  return request;
}

TEST(Requests, EachNeedsARight) {
  EXPECT_EQ(needed_right(rule(Rule::LIST)), Rights::read);
  EXPECT_EQ(needed_right(rule(Rule::HISTORY)), Rights::read);
  EXPECT_EQ(needed_right(rule(Rule::APPLY, true)), Rights::read);
  for (const auto action :
       {Rule::START, Rule::CHANGE, Rule::STOP, Rule::APPLY, Rule::CONFIRM, Rule::ROLLBACK}) {
    EXPECT_EQ(needed_right(rule(action)), Rights::change);
    EXPECT_TRUE(is_audited(rule(action)));
  }
  // A dry run of anything else is what it is.
  EXPECT_EQ(needed_right(rule(Rule::STOP, true)), Rights::change);
  // An action of a later version.
  EXPECT_EQ(needed_right(rule(static_cast<Rule::Action>(99))), Rights::change);

  Envelope request;
  request.mutable_job()->set_action(Job::LIST);
  EXPECT_EQ(needed_right(request), Rights::own);
  request.mutable_job()->set_action(Job::START);
  EXPECT_EQ(needed_right(request), Rights::change);
  request.mutable_stats();
  EXPECT_EQ(needed_right(request), Rights::own);
  request.mutable_watch();
  EXPECT_EQ(needed_right(request), Rights::own);
  request.mutable_why();
  EXPECT_EQ(needed_right(request), Rights::own);
  request.mutable_status();
  EXPECT_EQ(needed_right(request), Rights::read);
  request.mutable_cycle();
  EXPECT_EQ(needed_right(request), Rights::change);
  EXPECT_FALSE(is_audited(request));
  request.mutable_site();
  EXPECT_EQ(needed_right(request), Rights::change);
  EXPECT_TRUE(is_audited(request));
  request.mutable_reload();
  EXPECT_EQ(needed_right(request), Rights::change);
  request.mutable_drain();
  EXPECT_EQ(needed_right(request), Rights::change);
  request.mutable_bypass();
  EXPECT_EQ(needed_right(request), Rights::change);
}

TEST(Requests, WhatIsForwardedNeedsTheRightOfWhatIsInside) {
  Envelope request;
  Envelope& inside = *request.mutable_forward()->mutable_request();
  EXPECT_EQ(needed_right(request), Rights::change) << "nothing";
  inside.mutable_stats();
  EXPECT_EQ(needed_right(request), Rights::own);
  inside.mutable_status();
  EXPECT_EQ(needed_right(request), Rights::read);
  inside.mutable_drain();
  EXPECT_EQ(needed_right(request), Rights::change);
  EXPECT_TRUE(is_audited(request));
  inside.mutable_forward()->mutable_request()->mutable_stats();
  EXPECT_EQ(needed_right(request), Rights::change) << "one inside another";
}

}  // namespace
}  // namespace vpfs::control
