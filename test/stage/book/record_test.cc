#include "stage/book/record.h"

#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/stage/book/driver.h"

namespace vpfs::stage {
namespace {

using testing::HasSubstr;

template <typename What>
BookOperation operation(What what) {
  return {.at = at(5), .who = "alice (uid 1001)", .what = std::move(what)};
}

std::vector<BookOperation> one_of_each() {
  const RuleText text = {.name = "a", .condition = "jobid={a b}", .words = {"weight=4", "x\"\n"}};
  const RegisteredJob job = {.jobid = "4711[3]",
                             .clients = {"10.0.0.0/8", "fd00::1"},
                             .uids = {1, 2},
                             .gids = {3},
                             .account = "climate",
                             .nodes = 64};
  return {operation(StartRule{.rule = text}),
          operation(StartRule{.rule = text, .origin = RuleOrigin::coordinator, .until = at(9)}),
          operation(ChangeRule{.name = "a", .words = {"rate=none"}, .becomes = {"weight=1"}}),
          operation(ChangeRule{.name = "a", .words = {}, .until = UntilChange(at(9))}),
          operation(ChangeRule{.name = "a", .until = UntilChange(std::optional<WallTime>())}),
          operation(ChangeShare{.virtual_pfs = "default", .words = {"weight=2"}}),
          operation(StopRule{"ä"}),
          operation(StopShare{"default"}),
          operation(ApplySet{.rules = {{.text = text}, {.text = text, .until = at(7)}},
                             .shares = {{.virtual_pfs = "p", .words = {"weight=1"}},
                                        {.virtual_pfs = "default", .overrides = true}}}),
          {.at = at(1), .who = "bob", .what = StopRule{"a"}, .confirm_by = at(60)},
          operation(ApplySet{}),
          operation(Confirm{}),
          operation(Rollback{7}),
          operation(StartJob{.job = job, .words = {"weight=4"}, .until = at(3600)}),
          operation(StartJob{.job = job, .origin = RuleOrigin::coordinator}),
          operation(StopJob{"4711[3]"}),
          operation(ReplaceSite{.site = "site",
                                .rules = {{.text = text}, {.text = text, .until = at(7)}},
                                .jobs = {{.job = job}, {.job = job, .until = at(8)}}}),
          operation(ReplaceSite{}),
          operation(SetBypass{.on = true, .until = at(60)}),
          operation(SetBypass{}),
          operation(Expire{}),
          {.at = at(5), .who = "bob", .what = StopRule{"a"}, .confirm_by = at(60)}};
}

std::string error_of(const std::string& line) {
  const auto read = read_record(line);
  return read ? "" : read.error();
}

TEST(BookRecord, EveryOperationIsReadAsItWasWritten) {
  for (const BookOperation& written : one_of_each()) {
    const auto line = to_record(written, 17);
    ASSERT_TRUE(line);
    EXPECT_EQ(line->find('\n'), std::string::npos);
    const auto read = read_record(*line);
    ASSERT_TRUE(read) << *line << ": " << read.error();
    EXPECT_EQ(read->number, 17U);
    EXPECT_EQ(std::get<BookOperation>(read->what), written) << *line;
  }
}

TEST(BookRecord, ALineIsWhatTheFormatSays) {
  const BookOperation start = {
      .at = WallTime(std::chrono::seconds(1795348800)),
      .who = "bob",
      .what = StartRule{.rule = {.name = "backup", .condition = "uid=1", .words = {"weight=2"}}}};
  EXPECT_EQ(nlohmann::json::parse(*to_record(start, 17)), nlohmann::json::parse(R"({
    "v": 2, "n": 17, "at": 1795348800, "who": "bob", "op": "rule_start", "origin": "administrator",
    "rule": {"name": "backup", "condition": "uid=1", "words": ["weight=2"]}})"));
}

TEST(BookRecord, EveryMissingOrWrongMemberIsNamed) {
  for (const BookOperation& written : one_of_each()) {
    const auto whole = nlohmann::json::parse(*to_record(written, 17));
    for (const auto& [key, value] : whole.items()) {
      // Without these the operation is another one.
      if (key == "until" || key == "confirm_by" || key == "v") continue;
      nlohmann::json damaged = whole;
      damaged.erase(key);
      EXPECT_THAT(error_of(damaged.dump()), HasSubstr("\"" + key + "\" is missing")) << whole;
      damaged[key] = -1.5;
      EXPECT_THAT(error_of(damaged.dump()), HasSubstr("\"" + key + "\" is not ")) << whole;
    }
  }
}

TEST(BookRecord, MembersThatAreNotKnownAreSkipped) {
  for (const BookOperation& written : one_of_each()) {
    auto line = nlohmann::json::parse(*to_record(written, 17));
    line["later"] = {{"more", nullptr}};
    if (line.contains("rule")) line["rule"]["later"] = 1;
    const auto read = read_record(line.dump());
    ASSERT_TRUE(read);
    EXPECT_EQ(std::get<BookOperation>(read->what), written);
  }
}

TEST(BookRecord, TheVersionBeforeHadNoNumbers) {
  for (const BookOperation& written : one_of_each()) {
    auto line = nlohmann::json::parse(*to_record(written, 17));
    line["v"] = 1;
    line.erase("n");
    const auto read = read_record(line.dump());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->number, std::nullopt);
    EXPECT_EQ(std::get<BookOperation>(read->what), written);
  }
  RuleBook book(&plain_rule);
  ASSERT_TRUE(book.replay(R"({"v":1,"at":9,"who":"x","op":"rule_stop","name":"a"})").error() ==
              "there is no live rule 'a'");
  ASSERT_TRUE(book.replay(R"({"v":1,"at":9,"who":"x","op":"bypass","on":true})"));
  ASSERT_TRUE(book.replay(R"({"v":2,"n":2,"at":9,"who":"x","op":"bypass","on":false})"));
  EXPECT_EQ(book.state().number, 2U);
}

TEST(BookRecord, WhatANewerVersionWroteIsRefusedWithTheWayOut) {
  EXPECT_THAT(
      error_of(R"({"v":3,"n":1,"at":9,"who":"x","op":"confirm"})"),
      HasSubstr("a newer version of vpfs wrote it (format 3, this one reads up to 2). Run"));
  EXPECT_THAT(error_of(R"({"v":2,"n":1,"at":9,"who":"x","op":"rule_split"})"),
              HasSubstr("the operation 'rule_split' is not known: a newer version"));
}

TEST(BookRecord, ATextThatIsNotARecordIsRefused) {
  EXPECT_EQ(error_of(""), "this is not JSON");
  EXPECT_EQ(error_of("{\"v\":2"), "this is not JSON");
  EXPECT_EQ(error_of("[]"), "an object is missing");
  EXPECT_EQ(error_of("{}"), "\"v\" is missing, a number");
  EXPECT_EQ(error_of(R"({"v":2,"n":1,"at":99999999999,"who":"x","op":"confirm"})"),
            "\"at\" is more than 8589934592");
  EXPECT_THAT(error_of(R"({"v":2,"n":1,"at":1,"who":"x","op":"rule_start","origin":"moon",)"
                       R"("rule":{"name":"","condition":"","words":[]}})"),
              HasSubstr("the origin 'moon' is not known"));
}

TEST(BookRecord, ATextThatIsNotUtf8IsNotARecord) {
  EXPECT_EQ(to_record(operation(StopRule{"\xff"}), 1), std::nullopt);
}

TEST(BookRecord, AWholeStateIsReadAsItWasWritten) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a", {"weight=4", "for=2h"})), "");
  ASSERT_EQ(driver.refusal(start_rule("b")), "");
  ASSERT_EQ(driver.refusal(ChangeRule{.name = "climate", .words = {"weight=8", "for=3h"}}), "");
  ASSERT_EQ(driver.refusal(StopRule{"a"}), "");
  StartRule site = start_rule("site");
  site.origin = RuleOrigin::coordinator;
  ASSERT_EQ(driver.refusal(site), "");
  for (const char* id : {"1", "2", "3"}) {
    ASSERT_EQ(driver.refusal(StartJob{.job = {.jobid = id, .clients = {"10.0.0.1"}},
                                      .words = {"weight=4"},
                                      .until = at(9000)}),
              "");
  }
  ReplaceSite replace = {.site = "one", .rules = {{.text = start_rule("gold").rule}}, .jobs = {}};
  replace.jobs.push_back({.job = {.jobid = "3", .clients = {"10.0.0.9"}}, .until = at(7000)});
  ASSERT_EQ(driver.refusal(replace), "");
  ASSERT_EQ(driver.refusal(SetBypass{.on = true, .until = at(8000)}), "");
  ASSERT_EQ(driver.refusal(ApplySet{}, at(60)), "");
  const std::string line = driver.book.snapshot();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto read = read_record(line);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(std::get<BookState>(read->what), driver.book.state());
  // Rules are in it once, though most versions have them.
  EXPECT_EQ(nlohmann::json::parse(line)["rules"].size(), 2U);
}

TEST(BookRecord, ASnapshotOfBeforeThereWereSitesIsRead) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  auto line = nlohmann::json::parse(driver.book.snapshot());
  ASSERT_EQ(line.erase("site_jobs"), 1U);
  const auto read = read_record(line.dump());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(std::get<BookState>(read->what), driver.book.state());
}

TEST(BookRecord, AStateThatContradictsItselfIsRefused) {
  BookDriver driver;
  ASSERT_EQ(driver.refusal(start_rule("a")), "");
  const auto whole = nlohmann::json::parse(driver.book.snapshot());
  auto damaged = whole;
  damaged["history"][0]["rules"] = {1};
  EXPECT_THAT(error_of(damaged.dump()), HasSubstr("has a place that does not exist"));
  damaged = whole;
  damaged["version"] = 2;
  EXPECT_THAT(error_of(damaged.dump()), HasSubstr("not in a row"));
  damaged = whole;
  damaged["history"] = nlohmann::json::array();
  EXPECT_THAT(error_of(damaged.dump()), HasSubstr("the history is missing"));
}

}  // namespace
}  // namespace vpfs::stage
