#include "control/wire/utf8.h"

#include <gtest/gtest.h>

#include "control/wire/control.pb.h"

namespace vpfs::control {
namespace {

TEST(ToUtf8, LeavesWhatIsUtf8) {
  for (const char* good : {"", "plain", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    EXPECT_EQ(to_utf8(good), good);
  }
}

TEST(ToUtf8, ReplacesEachByteThatIsNot) {
  EXPECT_EQ(to_utf8("a\xff"
                    "b"),
            "a?b");
  EXPECT_EQ(to_utf8("\xc3"), "?");       // cut off
  EXPECT_EQ(to_utf8("\xc0\xaf"), "??");  // longer than needed
  EXPECT_EQ(to_utf8("\xe0\x80\xaf"), "???");
  EXPECT_EQ(to_utf8("\xed\xa0\x80"), "???");       // half of a pair
  EXPECT_EQ(to_utf8("\xf4\x90\x80\x80"), "????");  // beyond the last
  EXPECT_EQ(to_utf8("\xe2\x82x\xc3\xa4"), "??x\xc3\xa4");
}

TEST(MakeUtf8, GoesIntoEveryTextOfAMessage) {
  Envelope envelope;
  envelope.mutable_rule_reply()->add_rules()->add_words("\xff");
  envelope.mutable_rule_reply()->add_history()->add_differences()->set_after("x\xff");
  envelope.mutable_rule_reply()->set_text("\xc3\xa4");
  make_utf8(envelope);
  EXPECT_EQ(envelope.rule_reply().rules(0).words(0), "?");
  EXPECT_EQ(envelope.rule_reply().history(0).differences(0).after(), "x?");
  EXPECT_EQ(envelope.rule_reply().text(), "\xc3\xa4");
}

}  // namespace
}  // namespace vpfs::control
