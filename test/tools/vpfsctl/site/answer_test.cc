#include "tools/vpfsctl/site/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/words/message_json.h"

namespace vpfs::ctl {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::ordered_json;

ProxyAnswer done(std::string name = "a") {
  control::Envelope reply;
  reply.mutable_ack()->set_text("reloaded");
  return make_answer(std::move(name), reply);
}

ProxyAnswer refused(control::Error::Code code = control::Error::INVALID, std::string place = "",
                    std::string text = "no") {
  control::Envelope reply;
  reply.mutable_error()->set_code(code);
  reply.mutable_error()->set_place(place);
  reply.mutable_error()->set_text(text);
  return make_answer("s0", reply);
}

ProxyAnswer silent() {
  return unreachable("s1", "timeout", "did not answer within 5 s");
}

TEST(ProxyAnswer, TheExitCodeIsOfAllAnswersTogether) {
  using Answers = std::vector<ProxyAnswer>;
  EXPECT_EQ(exit_code(Answers{done(), done()}), ExitCode::done);
  EXPECT_EQ(exit_code(Answers{refused(), refused()}), ExitCode::refused);
  EXPECT_EQ(exit_code(Answers{silent(), silent()}), ExitCode::unreachable);
  EXPECT_EQ(exit_code(Answers{refused(), silent()}), ExitCode::refused);
  EXPECT_EQ(exit_code(Answers{done(), refused()}), ExitCode::partly);
  EXPECT_EQ(exit_code(Answers{done(), silent()}), ExitCode::partly);
}

TEST(ProxyAnswer, BestEffortForgivesWhatIsOnlyNotNow) {
  std::vector<ProxyAnswer> answers = {silent(), refused(control::Error::UNAVAILABLE), done()};
  forgive(answers, false);
  EXPECT_EQ(exit_code(answers), ExitCode::done);
  EXPECT_EQ(error_text(answers[0], ""),
            "vpfsctl: s1: warning: unreachable: did not answer within 5 s\n");

  answers = {refused(control::Error::INVALID)};
  forgive(answers, false);
  EXPECT_EQ(exit_code(answers), ExitCode::refused);
}

TEST(ProxyAnswer, AJobThatEndsNeedNotBeKnown) {
  std::vector<ProxyAnswer> answers = {refused(control::Error::NOT_FOUND)};
  forgive(answers, false);
  EXPECT_EQ(exit_code(answers), ExitCode::refused);
  forgive(answers, true);
  EXPECT_EQ(exit_code(answers), ExitCode::done);
}

TEST(ProxyAnswer, ErrorsNameTheProxyAndThePlace) {
  EXPECT_EQ(
      error_text(refused(control::Error::INVALID, "rate", "needs a unit, such as 500MiB/s"), ""),
      "vpfsctl: s0: refused: rate: needs a unit, such as 500MiB/s\n");
  EXPECT_EQ(
      error_text(refused(control::Error::INVALID, "rules.yaml:3: rules[0].match", "is empty"), ""),
      "vpfsctl: s0: refused: rules.yaml:3: rules[0].match: is empty\n");
}

TEST(ProxyAnswer, APlaceInTheConditionIsMarked) {
  EXPECT_EQ(
      error_text(refused(control::Error::INVALID, "COND:9", "unknown word"), "uid={1}& foo={2}"),
      "vpfsctl: s0: refused: unknown word\n"
      "  uid={1}& foo={2}\n"
      "           ^\n");
  // The offset counts bytes, the mark columns.
  EXPECT_EQ(error_text(refused(control::Error::INVALID, "COND:4", "no"), "\xc3\xbc\xc3\xbc=1"),
            "vpfsctl: s0: refused: no\n  \xc3\xbc\xc3\xbc=1\n    ^\n");
  // A place that is not there is not marked.
  EXPECT_EQ(error_text(refused(control::Error::INVALID, "COND:99", "no"), "uid=1"),
            "vpfsctl: s0: refused: no\n");
}

TEST(ProxyAnswer, NothingThatAProxySaysSteersTheTerminal) {
  EXPECT_EQ(error_text(refused(control::Error::INVALID, "", "\x1b[2Jgone\n"), ""),
            "vpfsctl: s0: refused: \\x1B[2Jgone\\x0A\n");
}

TEST(ProxyAnswer, JsonHasEveryProxyAndItsError) {
  const std::vector<ProxyAnswer> answers = {
      done("a"), refused(control::Error::NOT_FOUND, "NAME", "gone"), silent()};
  EXPECT_EQ(
      to_json(answers, "1.2").dump(),
      R"({"version":"1.2","proxies":[)"
      R"({"name":"a","ok":true,"error":null,"data":{"text":"reloaded","warnings":[]}},)"
      R"({"name":"s0","ok":false,"error":{"code":"not_found","place":"NAME","text":"gone"},"data":null},)"
      R"({"name":"s1","ok":false,"error":{"code":"timeout","place":"","text":"did not answer within 5 s"},"data":null}]})");
}

TEST(ProxyAnswer, TheStatusOfAProxyIsItsOwnJson) {
  control::Envelope reply;
  reply.mutable_status_reply()->set_json(R"({"policy":"sfq"})");
  EXPECT_EQ(
      to_json(std::vector<ProxyAnswer>{make_answer("a", reply)}, "1")["proxies"][0]["data"].dump(),
      R"({"policy":"sfq"})");
}

TEST(MessageJson, HasEveryFieldInItsOrderWithNumbersAsNumbers) {
  control::JobState job;
  job.set_jobid("7");
  job.add_uids(1001);
  job.set_until_at(9'007'199'254'740'993);
  EXPECT_EQ(words::to_json(job).dump(),
            R"({"jobid":"7","nodes":0,"uids":[1001],"gids":[],"clients":[],"account":"",)"
            R"("since_at":0,"until_at":9007199254740993,"origin":"","virtual_pfs":""})");
}

TEST(MessageJson, WhatIsOptionalAndAbsentIsNull) {
  control::Wait wait;
  EXPECT_EQ(words::to_json(wait).dump(),
            R"({"reason":"","since_us":0,"may_go_in_us":null,"target":null})");
  wait.set_may_go_in_us(18446744073709551615ULL);
  EXPECT_EQ(words::to_json(wait)["may_go_in_us"].dump(), "18446744073709551615");
}

TEST(MessageJson, PartsAreThereThoughTheyWereNotSent) {
  control::VirtualPfs each;
  const Json json = words::to_json(each);
  EXPECT_EQ(json["read"].dump(), R"({"requests":0,"bytes":0})");
  EXPECT_EQ(json["read_bytes"]["sumsq"].dump(), "0.0");
  control::Error error;
  error.set_code(control::Error::NOT_PERMITTED);
  EXPECT_EQ(words::to_json(error)["code"], "not_permitted");
}

}  // namespace
}  // namespace vpfs::ctl
