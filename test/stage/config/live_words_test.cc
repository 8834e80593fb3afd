#include "stage/config/live_words.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::stage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LiveWords, AWordIsAKeyAndMaybeAValue) {
  EXPECT_EQ(word_key("rate=1MiB/s"), "rate");
  EXPECT_EQ(word_value("rate=1MiB/s"), "1MiB/s");
  EXPECT_EQ(word_key("realtime"), "realtime");
  EXPECT_EQ(word_value("realtime"), "");
  EXPECT_EQ(word_key("operations=5"), "iops");
  EXPECT_EQ(word_key("virtual_pfs=a"), "vpfs");
  EXPECT_TRUE(takes_away("rate="));
  EXPECT_TRUE(takes_away("rate=none"));
  EXPECT_FALSE(takes_away("realtime"));
  EXPECT_EQ(value_of({"a=1", "b=2", "a=3"}, "a"), "3");
  EXPECT_EQ(value_of({"realtime"}, "realtime"), "");
  EXPECT_EQ(value_of({"realtime"}, "rate"), std::nullopt);
}

TEST(LiveWords, AChangeReplacesInPlaceAndAddsAtTheEnd) {
  EXPECT_THAT(
      with_changes({"weight=1", "operations=5", "realtime"}, {"iops=6", "min=1MiB/s", "weight="}),
      ElementsAre("iops=6", "realtime", "min=1MiB/s"));
  EXPECT_THAT(with_changes({"realtime"}, {"realtime=none"}), IsEmpty());
  const std::vector<std::string> old = {"weight=2", "iops=100", "realtime"};
  EXPECT_THAT(with_changes(old, {"weight=8"}), ElementsAre("weight=8", "iops=100", "realtime"));
  EXPECT_THAT(with_changes(old, {"operations=5", "rate=1MiB/s"}),
              ElementsAre("weight=2", "operations=5", "realtime", "rate=1MiB/s"));
  EXPECT_THAT(with_changes(old, {"iops=none", "realtime=none", "min=none"}),
              ElementsAre("weight=2"));
  EXPECT_THAT(with_changes({"a=1", "a=2"}, {"a=3"}), ElementsAre("a=3"));
}

TEST(LiveWords, JoinedChangesDoWhatBothDo) {
  const std::vector<std::string> first = {"rate=none", "weight=3"};
  const std::vector<std::string> second = {"weight=", "min=1MiB/s"};
  const auto both = joined_changes(first, second);
  EXPECT_THAT(both, ElementsAre("rate=none", "weight=none", "min=1MiB/s"));
  const std::vector<std::string> words = {"rate=5MiB/s", "weight=9"};
  EXPECT_EQ(with_changes(words, both), with_changes(with_changes(words, first), second));
}

TEST(LiveWords, ALineIsWhatAShellTakes) {
  EXPECT_EQ(rule_line({"a", "client=10.0.0.0/8", {"rate=1MiB/s"}}),
            "a client=10.0.0.0/8 rate=1MiB/s");
  EXPECT_EQ(rule_line({"a b", "", {}}), "'a b' ''");
  EXPECT_EQ(rule_line({"it's", "jobid={a b}&op=read", {"realtime"}}),
            R"('it'\''s' 'jobid={a b}&op=read' realtime)");
}

TEST(LiveWords, AShareIsSpelledExactly) {
  EXPECT_THAT(words_of_share({.name = "x"}), IsEmpty());
  VirtualPfsConfig all = {.name = "x"};
  all.share = {.weight = 4,
               .rate = {1'000'000},
               .operations = 2000,
               .burst = {3 * kMiB / 2},
               .burst_operations = 7,
               .realtime = true,
               .rank = 0,
               .min = {100 * kMiB},
               .latency = std::chrono::milliseconds(1500),
               .finish_bytes = {2 * 1024 * kGiB},
               .own = {{.word = "nodes", .value = 64}}};
  all.finish_within = std::chrono::hours(8);
  EXPECT_THAT(words_of_share(all),
              ElementsAre("weight=4", "rate=1000000B/s", "iops=2000", "burst=1536KiB",
                          "burst_iops=7", "realtime", "rank=0", "min=100MiB/s", "latency=1500ms",
                          "finish=2TiB/8h", "nodes=64"));
}

}  // namespace
}  // namespace vpfs::stage
