#include "control/web/web_question.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vpfs::control {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr std::int64_t kBegin = 1'795'348'800;

WebQuestion good(const std::string& path, const std::string& query = "", bool is_site = false) {
  auto read = read_web_question(path, query, is_site);
  EXPECT_TRUE(read) << read.error();
  return read.value_or(WebQuestion());
}

std::string problem(const std::string& query) {
  const auto read = read_web_question("/api/past", query, false);
  return read ? "" : read.error();
}

Envelope past_of(const std::string& name, std::uint64_t mib) {
  Envelope reply;
  PastReply& past = *reply.mutable_past_reply();
  past.set_from_at(kBegin);
  past.set_to_at(kBegin + 60);
  past.set_known_from_at(kBegin - 60);
  past.set_length_us(60'000'000);
  past.set_cost(mib << 20);
  PastOf& who = *past.add_virtual_pfs();
  who.set_name(name);
  who.set_asked(true);
  who.set_weight(1);
  who.set_read_bytes(mib << 20);
  who.set_cost(mib << 20);
  who.set_entitled_cost(mib << 20);
  who.set_operations(mib);
  who.set_active_us(60'000'000);
  who.set_held_limit_us(30'000'000);
  return reply;
}

Envelope error_of(const std::string& text) {
  Envelope reply;
  reply.mutable_error()->set_text(text);
  return reply;
}

Json answered(const WebQuestion& question, const Envelope& reply) {
  const auto text = web_answer(question, reply);
  EXPECT_TRUE(text) << text.error().text();
  return text ? Json::parse(*text) : Json();
}

TEST(WebQuestion, PathsAreThoseOfQuestions) {
  EXPECT_TRUE(is_web_question("/api/status"));
  EXPECT_TRUE(is_web_question("/api/past"));
  EXPECT_FALSE(is_web_question("/api/"));
  EXPECT_FALSE(is_web_question("/api/reload"));
}

TEST(WebQuestion, NothingCanBeChanged) {
  EXPECT_TRUE(good("/api/status").request.has_status());
  EXPECT_EQ(good("/api/rules").request.rule().action(), Rule::LIST);
  EXPECT_EQ(good("/api/changes").request.rule().action(), Rule::HISTORY);
  EXPECT_EQ(good("/api/series", "back=120").request.series().back_seconds(), 120U);
  const WebQuestion past = good("/api/past", "back=60&name=a%20b%C3%A9+c");
  EXPECT_EQ(past.request.past().name(), "a b\xC3\xA9 c");
  EXPECT_EQ(past.name, past.request.past().name());
}

TEST(WebQuestion, ThePastOfASiteIsThatOfItsStages) {
  EXPECT_TRUE(good("/api/series", "", true).request.forward().request().has_series());
  EXPECT_TRUE(good("/api/past", "", true).request.forward().request().has_past());
  EXPECT_TRUE(good("/api/rules", "", true).request.has_rule());
}

TEST(WebQuestion, MistakesAreSaid) {
  for (const char* wrong :
       {"back=0", "back=-1", "back=86401", "back=", "back=1x", "back=99999999999999999999"}) {
    EXPECT_EQ(problem(wrong), "back: expected seconds, 1 to 86400") << wrong;
  }
  for (const char* wrong : {"name=%", "name=%g1", "name=%FF", "name=%4"}) {
    EXPECT_THAT(problem(wrong), HasSubstr("name: expected a name")) << wrong;
  }
  EXPECT_THAT(problem("name=" + std::string(1025, 'a')), HasSubstr("name: expected"));
  EXPECT_EQ(problem("what=1"), "expected back= and name=");
  EXPECT_EQ(problem("&&"), "expected back= and name=");
}

TEST(WebAnswer, SaysWhyInWordsAndNumbers) {
  const Json answer = answered(good("/api/past", "name=a"), past_of("a", 60));
  EXPECT_THAT(answer["why"].get<std::string>(), HasSubstr("a"));
  ASSERT_EQ(answer["virtual_pfs"].size(), 1U);
  const Json& row = answer["virtual_pfs"][0];
  EXPECT_EQ(row["delivered_bytes"], 60U << 20);
  EXPECT_EQ(row["entitled_bytes"], 60U << 20);
  EXPECT_NEAR(row["parts"]["limit"].get<double>(), 0.5, 0.01);
  EXPECT_EQ(answer["problems"].size(), 0U);
  EXPECT_FALSE(answered(good("/api/past"), past_of("a", 60)).contains("why"));
}

TEST(WebAnswer, AddsUpTheServersOfASite) {
  Envelope reply;
  for (const auto& [stage, answer] :
       {std::pair("s0", past_of("a", 60)), std::pair("s1", past_of("a", 20)),
        std::pair("s2", error_of("it is silent"))}) {
    ForwardReply::Answer& to = *reply.mutable_forward_reply()->add_answers();
    to.set_stage(stage);
    *to.mutable_answer() = answer;
  }
  const Json answer = answered(good("/api/past", "name=a", true), reply);
  EXPECT_EQ(answer["virtual_pfs"][0]["delivered_bytes"], 80U << 20);
  EXPECT_EQ(answer["problems"], Json::parse(R"([{"server":"s2","text":"it is silent"}])"));
}

TEST(WebAnswer, ASeriesHasANumberForEachPoint) {
  Envelope reply;
  SeriesReply& series = *reply.mutable_series_reply();
  SeriesLine& line = *series.add_lines();
  line.set_name("<b>bold</b>");
  for (unsigned i = 0; i < 2; ++i) {
    series.add_begin_at(kBegin + i);
    series.add_length_us(1'000'000);
    line.add_read_bytes(100);
    line.add_written_bytes(i);
    line.add_operations(3);
    line.add_held_limit_us(7);
    line.add_held_share_us(0);
    line.add_held_kept_us(8);
    line.add_held_depth_us(0);
    line.add_held_class_us(0);
    line.add_held_client_us(0);
  }
  const Json answer = answered(good("/api/series"), reply);
  const Json& server = answer["servers"][0];
  EXPECT_EQ(server["begin_at"], Json({kBegin, kBegin + 1}));
  EXPECT_EQ(server["lines"][0]["bytes"], Json({100, 101}));
  EXPECT_EQ(server["lines"][0]["held_us"]["limit"], Json({7, 7}));
  EXPECT_EQ(server["lines"][0]["held_us"]["kept"], Json({8, 8}));
  EXPECT_EQ(server["lines"][0]["name"], "<b>bold</b>");
}

// A stage of a site may answer what it likes; the others are shown.
TEST(WebAnswer, ASeriesThatDoesNotFitTogetherIsAProblemOfItsStage) {
  const auto whole = [] {
    Envelope reply;
    SeriesReply& series = *reply.mutable_series_reply();
    for (SeriesLine* line : {series.add_lines(), series.mutable_others()}) {
      line->add_read_bytes(1);
      line->add_written_bytes(1);
      line->add_operations(1);
      for (auto* held : {line->mutable_held_limit_us(), line->mutable_held_share_us(),
                         line->mutable_held_kept_us(), line->mutable_held_depth_us(),
                         line->mutable_held_class_us(), line->mutable_held_client_us()}) {
        held->Add(0);
      }
    }
    series.add_begin_at(kBegin);
    series.add_length_us(1'000'000);
    return reply;
  };
  const auto changed = [&](const std::function<void(SeriesReply&)>& change) {
    Envelope reply = whole();
    change(*reply.mutable_series_reply());
    return reply;
  };
  const std::vector<Envelope> odd = {
      changed([](SeriesReply& series) { series.mutable_lines(0)->clear_written_bytes(); }),
      changed([](SeriesReply& series) { series.mutable_lines(0)->add_read_bytes(1); }),
      changed([](SeriesReply& series) { series.mutable_others()->clear_held_kept_us(); }),
      changed([](SeriesReply& series) { series.clear_length_us(); }),
      changed([](SeriesReply& series) { series.clear_begin_at(); }),
      changed([](SeriesReply& series) { series.set_length_us(0, std::uint64_t{1} << 62U); }),
      changed([](SeriesReply& series) {
        for (int i = 0; i < 1000; ++i) *series.add_lines() = series.others();
      }),
  };
  for (const Envelope& each : odd) {
    Envelope reply;
    for (const auto& [stage, answer] : {std::pair("s0", whole()), std::pair("s1", each)}) {
      ForwardReply::Answer& to = *reply.mutable_forward_reply()->add_answers();
      to.set_stage(stage);
      *to.mutable_answer() = answer;
    }
    const Json answer = answered(good("/api/series", "", true), reply);
    ASSERT_EQ(answer["servers"].size(), 1U) << each.ShortDebugString().substr(0, 200);
    EXPECT_EQ(answer["servers"][0]["server"], "s0");
    ASSERT_EQ(answer["problems"].size(), 1U);
    EXPECT_EQ(answer["problems"][0]["server"], "s1");
    EXPECT_THAT(answer["problems"][0]["text"].get<std::string>(),
                HasSubstr("its series cannot be shown"));
  }
}

TEST(WebAnswer, ManyRowsOfAStageAreCutToTheBusiest) {
  Envelope reply = past_of("a", 60);
  PastReply& past = *reply.mutable_past_reply();
  for (int i = 0; i < 100'000; ++i) {
    PastOf& more = *past.add_virtual_pfs();
    more.set_name(fmt::format("job-{}", i));
    more.set_lag_cost(std::numeric_limits<double>::quiet_NaN());
    more.set_lag_bound_cost(1e300);
  }
  const Json answer = answered(good("/api/past"), reply);
  ASSERT_EQ(answer["virtual_pfs"].size(), 1000U);
  EXPECT_EQ(answer["virtual_pfs"][0]["name"], "a");
}

TEST(WebAnswer, AnErrorIsOne) {
  const auto text = web_answer(good("/api/rules"), error_of("not now"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().text(), "not now");
}

}  // namespace
}  // namespace vpfs::control
