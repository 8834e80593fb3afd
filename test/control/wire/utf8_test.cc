#include "control/wire/utf8.h"

#include <gtest/gtest.h>

#include "control/wire/control.pb.h"

namespace vpfs::control {
namespace {

TEST(MakeUtf8, GoesIntoEveryTextOfAMessage) {
  Envelope envelope;
  envelope.mutable_rule_reply()->add_rules()->add_words("\xff");
  envelope.mutable_rule_reply()->add_history()->add_differences()->set_after("x\xff");
  envelope.mutable_rule_reply()->set_text("\xc3\xa4");
  make_utf8(envelope);
  EXPECT_EQ(envelope.rule_reply().rules(0).words(0), "\xEF\xBF\xBD");
  EXPECT_EQ(envelope.rule_reply().history(0).differences(0).after(), "x\xEF\xBF\xBD");
  EXPECT_EQ(envelope.rule_reply().text(), "\xc3\xa4");
}

}  // namespace
}  // namespace vpfs::control
