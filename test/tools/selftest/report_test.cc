#include "tools/selftest/report.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/tools/selftest/made.h"

namespace vpfs::selftest {
namespace {

using ::testing::HasSubstr;

Settings made_settings() {
  const Result<Settings> settings = check({.on = "tcp-px://stor0:4334/vpfs",
                                           .direct = "tcp://stor0:3334/vpfs",
                                           .directory = "/test",
                                           .share = ""});
  return *settings;
}

TEST(SelftestReport, HasATableAndAVerdictForPeople) {
  const Record record = MadeServer().record(made_input());
  const std::string text = to_words(made_settings(), record, judge(record, std::nullopt));
  EXPECT_THAT(text, HasSubstr("self-test of stor0: policy sfq, depth 8, 3 min"));
  EXPECT_THAT(text, HasSubstr("IN FLIGHT  READ MiB/s"));
  EXPECT_THAT(text, HasSubstr("\n       64 "));
  EXPECT_THAT(text, HasSubstr("\ngood  2:1 holds"));
}

TEST(SelftestReport, HasEverythingAsJson) {
  const Record record = MadeServer().record(made_input());
  const auto json =
      nlohmann::json::parse(to_json(made_settings(), record, judge(record, std::nullopt)));
  EXPECT_EQ(json["proxy"]["name"], "stor0");
  EXPECT_EQ(json["settings"]["time_s"], 180);
  EXPECT_EQ(json["findings"]["good"], true);
  EXPECT_EQ(json["findings"]["shares"].size(), 2U);
  EXPECT_EQ(json["findings"]["shares"][1]["wanted"], 4);
  EXPECT_EQ(json["findings"]["depth"]["requests"], 8);
  EXPECT_EQ(json["measurements"].size(), record.measurements.size());
  EXPECT_EQ(json["measurements"][0]["path"], "direct");
}

TEST(SelftestReport, DrawsWhatWasMeasured) {
  const Record record = MadeServer().record(made_input());
  const std::string svg = to_svg(record, judge(record, std::nullopt));
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("MiB/s by requests in flight"));
  EXPECT_THAT(svg, HasSubstr("4 of 4:1"));
  EXPECT_THAT(svg, HasSubstr("limit"));
}

TEST(SelftestReport, DrawsNothingOfNothing) {
  const Record record;
  const std::string svg = to_svg(record, judge(record, std::nullopt));
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace vpfs::selftest
