#include "control/wire/protocol.h"

#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

TEST(Versions, TheNewestThatBothSpeakIsSpoken) {
  EXPECT_EQ(common_version({.newest = 1, .least = 1}, {.newest = 1, .least = 1}), 1U);
  EXPECT_EQ(common_version({.newest = 3, .least = 2}, {.newest = 2, .least = 1}), 2U);
  EXPECT_EQ(common_version({.newest = 2, .least = 1}, {.newest = 3, .least = 2}), 2U);
  EXPECT_EQ(common_version({.newest = 3, .least = 2}, {.newest = 1, .least = 0}), std::nullopt);
  EXPECT_EQ(common_version({.newest = 1, .least = 1}, {.newest = 0, .least = 0}), std::nullopt);
}

TEST(Versions, SidesWithoutACommonOneAreToldBoth) {
  const std::string text = no_common_version({.newest = 4, .least = 3}, {.newest = 1, .least = 1});
  EXPECT_NE(text.find("versions 3 to 4"), std::string::npos) << text;
  EXPECT_NE(text.find("version 1"), std::string::npos) << text;
}

TEST(BodyName, IsTheOneOfTheMessages) {
  Envelope envelope;
  EXPECT_EQ(body_name(envelope), "");
  envelope.mutable_rule_reply();
  EXPECT_EQ(body_name(envelope), "rule_reply");
}

}  // namespace
}  // namespace vpfs::control
