#include "control/store/leadership.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string problem_of(const std::string& record) {
  const auto leadership = parse_leadership(record);
  return leadership ? "none" : leadership.error().message;
}
// A record with these fields besides those of all versions.
std::string with_field(const std::string& field) {
  return R"({"v":1,"term":2,"lease_us":1,"transit_us":1,)" + field + "}";
}

TEST(Leadership, ARecordGivesItBack) {
  const Leadership whole = {
      .term = kLargestTerm,
      .lease = 1s,
      .transit = 250us,
      .incarnation = ~std::uint64_t{0},
      .addresses = {"10.0.0.1:4711", "[::1]:1", "a \"quoted\" \\ name \u00e9"},
      .has_resigned = true};
  const std::string record = to_record(whole);
  EXPECT_EQ(record.find('\n'), std::string::npos);
  const auto read = parse_leadership(record);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, whole);
}

TEST(Leadership, AddressesAreFitToBeShown) {
  const auto bytes = parse_leadership(to_record({.term = 1, .addresses = {"\xff"}}));
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(bytes->addresses.size(), 1U);
  for (const std::string wrong : {"a\nb", "a\x1b[2J", "\x7f"}) {
    EXPECT_EQ(problem_of(to_record({.term = 1, .addresses = {wrong}})),
              "an address of `addresses` is not a host and a port, nor a path");
  }
  EXPECT_EQ(problem_of(to_record({.term = 1, .addresses = {std::string(2000, 'a')}})),
            "an address of `addresses` is not a host and a port, nor a path");
  EXPECT_EQ(problem_of(to_record({.term = 1, .addresses = std::vector<std::string>(17, "a:1")})),
            "it has 17 addresses in `addresses`: expected at most 16");
}

TEST(Leadership, WhatHasNoAddressIsWrittenAsBeforeStandbys) {
  EXPECT_EQ(to_record({.term = 7, .lease = 1s, .transit = 500ms}),
            R"({"lease_us":1000000,"term":7,"transit_us":500000,"v":1})");
}

TEST(Leadership, ARecordOfAVersionWithoutStandbysIsRead) {
  const auto read = parse_leadership(R"({"lease_us":1000000,"term":7,"transit_us":500000,"v":1})");
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (Leadership{.term = 7, .lease = 1s, .transit = 500ms}));
}

TEST(Leadership, WhatIsWrongWithARecordIsSaid) {
  EXPECT_EQ(problem_of(""), "it is not a JSON object");
  EXPECT_EQ(problem_of("7"), "it is not a JSON object");
  EXPECT_EQ(problem_of("{"), "it is not a JSON object");
  EXPECT_EQ(problem_of("{}"), "it has no number `v`");
  EXPECT_THAT(problem_of(R"({"v":2})"), HasSubstr("it has the format 2, which this version"));
  EXPECT_EQ(problem_of(R"({"v":1})"), "it has no number `term`");
  EXPECT_EQ(problem_of(R"({"v":1,"term":-1})"), "it has no number `term`");
  EXPECT_EQ(problem_of(R"({"v":1,"term":2.5})"), "it has no number `term`");
  EXPECT_EQ(problem_of(R"({"v":1,"term":2})"), "it has no number `lease_us`");
  EXPECT_EQ(problem_of(R"({"v":1,"term":2,"lease_us":1})"), "it has no number `transit_us`");
  EXPECT_EQ(problem_of(R"({"v":1,"term":0,"lease_us":1,"transit_us":1})"), "its term is 0");
  EXPECT_THAT(problem_of(R"({"v":1,"term":18446744073709551615,"lease_us":1,"transit_us":1})"),
              HasSubstr("is too large"));
  for (const char* times : {R"("lease_us":9223372036854775807,"transit_us":1})",
                            R"("lease_us":1,"transit_us":9223372036854775807})"}) {
    EXPECT_THAT(problem_of(std::string(R"({"v":1,"term":2,)") + times),
                HasSubstr("longer than a year"));
  }
  // A journal of live rules.
  EXPECT_THAT(problem_of(R"({"v":2,"n":17,"op":"start"})"), HasSubstr("it has the format 2"));
}

TEST(Leadership, WhatIsWrongWithAFieldThatMayBeMissingIsSaidToo) {
  EXPECT_EQ(problem_of(with_field(R"("incarnation":7,"addresses":[],"resigned":false)")), "none");
  EXPECT_EQ(problem_of(with_field(R"("a_later_field":{})")), "none");
  EXPECT_EQ(problem_of(with_field(R"("incarnation":-1)")), "it has no number `incarnation`");
  EXPECT_EQ(problem_of(with_field(R"("addresses":"a")")), "its `addresses` are not a list");
  EXPECT_EQ(problem_of(with_field(R"("addresses":["a",7])")),
            "an address of `addresses` is not a text");
  EXPECT_EQ(problem_of(with_field(R"("resigned":1)")), "its `resigned` is neither true nor false");
}

}  // namespace
}  // namespace vpfs::control
