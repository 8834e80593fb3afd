#include "control/etcd/etcd_messages.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/etcd/etcd_keys.h"

namespace vpfs::control {
namespace {

using Json = nlohmann::json;

TEST(EtcdMessages, ATransactionHasNumbersAsTextAndKeysInBase64) {
  const EtcdTransaction transaction = {
      .compares = {{.key = "/a",
                    .target = EtcdCompare::Target::mod_revision,
                    .revision = std::numeric_limits<std::int64_t>::max()},
                   {.key = "/b", .target = EtcdCompare::Target::create_revision, .revision = 0}},
      .success = {etcd_put("/a", "x", -7), etcd_erase("/b", "/c"), etcd_erase("/d")},
      .failure = {etcd_range({.key = "/a",
                              .end = "/b",
                              .limit = 3,
                              .revision = 4,
                              .keys_only = true,
                              .descending = true})}};
  EXPECT_EQ(to_json(transaction), Json::parse(R"({
    "compare": [
      {"result": "EQUAL", "target": "MOD", "key": "L2E=", "mod_revision": "9223372036854775807"},
      {"result": "EQUAL", "target": "CREATE", "key": "L2I=", "create_revision": "0"}],
    "success": [
      {"request_put": {"key": "L2E=", "value": "eA==", "lease": "-7"}},
      {"request_delete_range": {"key": "L2I=", "range_end": "L2M="}},
      {"request_delete_range": {"key": "L2Q="}}],
    "failure": [
      {"request_range": {"key": "L2E=", "range_end": "L2I=", "limit": "3", "revision": "4",
                         "keys_only": true, "sort_target": "KEY", "sort_order": "DESCEND"}}]})"));
}

TEST(EtcdMessages, AnAnswerHasDefaultsForWhatIsAbsent) {
  const auto parsed = parse_etcd_json(R"({"header":{"revision":"9223372036854775807",
      "raft_term":"18446744073709551615"},"kvs":[{"key":"L2E="},{"key":"L2I=","value":"eA==",
      "create_revision":"5","mod_revision":"9223372036854775806","version":"1",
      "lease":"-9223372036854775808"}],"more":true,"count":"9","new":[{}]})");
  ASSERT_TRUE(parsed);
  const auto answer = parse_range_answer(*parsed);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->revision, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(answer->raft_term, std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(answer->has_more);
  ASSERT_EQ(answer->found.size(), 2U);
  EXPECT_EQ(answer->found[0].key, "/a");
  EXPECT_EQ(answer->found[0].value, "");
  EXPECT_EQ(answer->found[0].mod_revision, 0);
  EXPECT_EQ(answer->found[1].value, "x");
  EXPECT_EQ(answer->found[1].create_revision, 5);
  EXPECT_EQ(answer->found[1].mod_revision, std::numeric_limits<std::int64_t>::max() - 1);
  EXPECT_EQ(answer->found[1].lease, std::numeric_limits<std::int64_t>::min());
  const auto empty = parse_transaction_answer(Json::parse(R"({"header":{}})"));
  ASSERT_TRUE(empty);
  EXPECT_FALSE(empty->succeeded);
  EXPECT_TRUE(empty->found.empty());
}

TEST(EtcdMessages, FieldsOfAnotherKindAreErrors) {
  for (const char* text :
       {R"({})", R"({"header":1})", R"({"header":[]})", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"1 "}})", R"({"header":{"revision":"9223372036854775808"}})",
        R"({"header":{"revision":1.5}})", R"({"header":{"revision":{}}})",
        R"({"header":{"raft_term":"-1"}})", R"({"header":{},"kvs":{}})",
        R"({"header":{},"kvs":[1]})", R"({"header":{},"kvs":[{"key":1}]})",
        R"({"header":{},"kvs":[{"key":"L2E"}]})", R"({"header":{},"kvs":[{"lease":"1x"}]})",
        R"({"header":{},"more":"yes"})"}) {
    EXPECT_FALSE(parse_range_answer(Json::parse(text))) << text;
  }
  for (const char* text : {R"({"header":{},"succeeded":1})", R"({"header":{},"responses":{}})",
                           R"({"header":{},"responses":[{"response_range":{"kvs":[[]]}}]})"}) {
    EXPECT_FALSE(parse_transaction_answer(Json::parse(text))) << text;
  }
  // A response that is not a range is not looked at.
  EXPECT_TRUE(parse_transaction_answer(Json::parse(R"({"header":{},"responses":[1,{}]})")));
}

TEST(EtcdMessages, WhatIsDeepOrHasManyValuesIsNotTaken) {
  std::string deep = R"({"a":)";
  for (int depth = 0; depth < 1'000'000; ++depth) deep += "[";
  EXPECT_FALSE(parse_etcd_json(deep));
  std::string wide = R"({"a":[1)";
  for (int value = 0; value < 300'000; ++value) wide += ",1";
  wide += "]}";
  EXPECT_FALSE(parse_etcd_json(wide));
  for (const char* text : {"", " ", "{", "[]", "null", "1", "\"x\"", "{}{}", "{\"a\":\"\xff\"}",
                           "{\"a\":1", "{\"a\":1}x", "{'a':1}", "\xef\xbb\xbf"}) {
    EXPECT_FALSE(parse_etcd_json(text)) << text;
  }
  EXPECT_TRUE(parse_etcd_json(R"({"a":[[[1]]]})"));
}

TEST(EtcdMessages, ErrorsOfCallsAndOfStreamsAreUnderstood) {
  const auto call = parse_etcd_error(Json::parse(R"({"error":"a","message":"b","code":5})"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->code, 5);
  EXPECT_EQ(call->message, "b");
  const auto stream = parse_etcd_error(
      Json::parse(R"({"error":{"grpc_code":14,"http_code":503,"message":"gone"}})"));
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->code, 14);
  EXPECT_EQ(stream->message, "gone");
  EXPECT_FALSE(parse_etcd_error(Json::parse(R"({"header":{}})")));
  EXPECT_TRUE(parse_etcd_error(Json::parse(R"({"error":[],"code":[],"message":{}})")));
}

TEST(EtcdMessages, AWatchIsToldOfEventsAndOfItsEnd) {
  using enum EtcdWatchMessage;
  EXPECT_EQ(parse_watch_message(R"({"result":{"header":{},"created":true}})"), nothing);
  EXPECT_EQ(parse_watch_message(R"({"result":{"header":{},"events":[]}})"), nothing);
  EXPECT_EQ(parse_watch_message(R"({"result":{"header":{},"events":[{"type":"DELETE"}]}})"), event);
  EXPECT_EQ(parse_watch_message(R"({"result":{"canceled":true,"compact_revision":"7"}})"),
            compacted);
  EXPECT_EQ(parse_watch_message(R"({"result":{"created":true,"canceled":true}})"), ended);
  for (const char* text : {"", "{}", "x", R"({"error":{"message":"no"}})", R"({"result":1})",
                           R"({"result":{"canceled":"x"}})"}) {
    EXPECT_NE(parse_watch_message(text), event) << text;
  }
}

TEST(EtcdMessages, AKeyBehindAPrefixIsFound) {
  EXPECT_EQ(end_of_prefix("/a/"), "/a0");
  EXPECT_EQ(end_of_prefix("a\xff\xff"), "b");
  EXPECT_EQ(end_of_prefix("\xff"), std::string(1, '\0'));
}

TEST(EtcdKeys, AreInTheOrderOfNumbersAndAreReadBack) {
  const EtcdKeys keys("/vpfs/s/");
  EXPECT_EQ(keys.record({.generation = 3, .number = 10}),
            "/vpfs/s/rules/00000000000000000003/00000000000000000010");
  EXPECT_LT(keys.record({.generation = 3, .number = 9}),
            keys.record({.generation = 3, .number = 10}));
  const EtcdKeys::Place place = {.generation = 3, .number = ~std::uint64_t{0}};
  const auto own = keys.parse(keys.record(place), 3);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->number, ~std::uint64_t{0});
  EXPECT_FALSE(own->part);
  const auto part = keys.parse(keys.part(place, 17), 3);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->part, 17U);
  for (const std::string& key :
       {keys.record(place) + "0", keys.record(place) + "/", keys.part(place, 1) + "2",
        keys.records_of(3), keys.records_of(3) + "99999999999999999999",
        keys.records_of(3) + "0000000000000000000x", keys.term(), keys.record({4, 1})}) {
    EXPECT_FALSE(keys.parse(key, 3)) << key;
  }
}

}  // namespace
}  // namespace vpfs::control
