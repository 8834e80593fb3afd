#include "control/words/why_text.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/words/fairness_text.h"
#include "control/words/reason_text.h"
#include "test/support/time_zone.h"

namespace vpfs::words {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kBegin = 1'795'348'800;      // 2026-11-22 12:00:00 UTC
constexpr std::uint64_t kMicroseconds = 1'000'000;  // of a second

// A minute at servers, with "a" that is asked about and "b".
class WhyText : public ::testing::Test {
 protected:
  static control::PastOf use(const std::string& name, std::uint64_t mib) {
    control::PastOf made;
    made.set_name(name);
    made.add_rules("rule-" + name);
    made.set_weight(2);
    made.set_read_bytes(mib << 20);
    made.set_cost(mib << 20);
    made.set_entitled_cost(mib << 20);
    made.set_wanted_cost(mib << 20);
    made.set_operations(mib);
    made.set_active_us(60 * kMicroseconds);
    return made;
  }
  static SitePast::Server answer(const std::string& server,
                                 const std::vector<control::PastOf>& what) {
    control::PastReply past;
    past.set_from_at(kBegin);
    past.set_to_at(kBegin + 60);
    past.set_length_us(60 * kMicroseconds);
    past.set_known_from_at(kBegin - 3600);
    past.set_first_rules(3);
    past.set_last_rules(3);
    for (const control::PastOf& each : what) {
      *past.add_virtual_pfs() = each;
      past.set_cost(past.cost() + each.cost());
    }
    past.set_most_cost_per_second(past.cost() / 30);
    return {.name = server, .reply = past};
  }
  static control::PastOf asked(std::uint64_t mib = 240) {
    control::PastOf made = use("a", mib);
    made.set_asked(true);
    return made;
  }
  static SitePast site(const std::vector<SitePast::Server>& servers) { return add_up(servers); }
  static std::string reason(const control::PastOf& a, const control::PastOf& b = use("b", 240)) {
    const SitePast past = site({answer("s0", {a, b})});
    return reason_text(past, past.virtual_pfs.at("a"));
  }

 private:
  test::TimeZone zone_{"UTC"};
};

TEST_F(WhyText, SaysInWordsWhatHeldItAndWhatWouldHelp) {
  control::PastOf a = asked();
  a.set_rate(4 << 20);
  a.set_held_limit_us(43 * kMicroseconds);
  a.set_held_depth_us(2 * kMicroseconds);
  a.set_served_us(3 * kMicroseconds);
  a.set_waited_us(48 * kMicroseconds);
  a.set_longest_wait_us(250'000);
  const auto text = why_text(site({answer("s0", {a, use("b", 480)})}), "a");
  ASSERT_TRUE(text);
  EXPECT_EQ(
      *text,
      "a: weight 2, rate 4 MiB/s; rule rule-a\n"
      "2026-11-22 12:00:00 to 2026-11-22 12:01:00, at s0; the live rules were those of "
      "version 3\n"
      "It got 240.0 MiB in 240 requests, 4.0 MiB/s while it was active, for 60 s.\n"
      "Its own limit, 4 MiB/s at each server, held it for 72% of the time; nothing waited for "
      "the data server: a higher limit would help.\n"
      "\n"
      "TIME                              PART\n"
      "held by a limit                    72%\n"
      "held by the shares of others        0%\n"
      "held by a slot kept for others      0%\n"
      "held because the server was full    3%\n"
      "held by other traffic classes       0%\n"
      "held because its client was slow    0%\n"
      "at the data server                  5%\n"
      "client, program or network         20%\n"
      "A request waited 200.0 ms on average, 250.0 ms at most, and took 12.5 ms then.\n"
      "\n"
      "ALSO SERVED  WEIGHT      BYTES  PART  RULE\n"
      "b                 2  480.0 MiB   67%  rule-b\n");
}

TEST_F(WhyText, AHigherLimitHelpsIfTheServerHasMoreToGive) {
  control::PastOf a = asked();
  a.set_held_limit_us(50 * kMicroseconds);
  control::PastOf b = use("b", 240);
  EXPECT_THAT(reason(a, b), HasSubstr("nothing waited for the data server: a higher limit would"));
  b.set_held_depth_us(30 * kMicroseconds);
  EXPECT_THAT(reason(a, b), HasSubstr("the server had 50% to spare of the most that it has done"));
  SitePast::Server full = answer("s0", {a, b});
  full.reply.set_most_cost_per_second(8 << 20);
  const SitePast past = site({full});
  EXPECT_THAT(reason_text(past, past.virtual_pfs.at("a")),
              HasSubstr("the server was full: a higher limit would take from others"));
}

TEST_F(WhyText, OneThatOthersHeldIsToldOfItsWeight) {
  control::PastOf a = asked();
  a.set_held_share_us(30 * kMicroseconds);
  a.set_held_depth_us(20 * kMicroseconds);
  EXPECT_THAT(reason(a), HasSubstr("got what its weight, 2, entitled it to"));
  a.set_entitled_cost(480 << 20);
  EXPECT_THAT(reason(a), HasSubstr("got 50% of what its weight, 2, entitled it to"));
  EXPECT_THAT(reason(a, use("b", 1)), HasSubstr("nearly alone"));
}

TEST_F(WhyText, TheOtherCausesHaveWordsOfTheirOwn) {
  control::PastOf a = asked();
  a.set_held_class_us(40 * kMicroseconds);
  EXPECT_THAT(reason(a), HasSubstr("other traffic classes went first for 67%"));
  a = asked();
  a.set_held_kept_us(40 * kMicroseconds);
  EXPECT_THAT(reason(a), HasSubstr("A slot was kept for others"));
  EXPECT_THAT(reason(a), HasSubstr("for 67% of the time"));
  a = asked();
  a.set_held_client_us(40 * kMicroseconds);
  EXPECT_THAT(reason(a), HasSubstr("client was slow"));
  a = asked();
  a.set_served_us(55 * kMicroseconds);
  EXPECT_THAT(reason(a), HasSubstr("the data server worked for it"));
  a = asked();
  a.set_held_limit_us(6 * kMicroseconds);
  EXPECT_THAT(reason(a), HasSubstr("For 90% of the time it asked for nothing"));
  EXPECT_THAT(reason(a), HasSubstr("it was held: for 10% of all the time"));
}

TEST_F(WhyText, AServerThatIsSlowForItAloneIsSeen) {
  control::PastOf a = asked();
  a.set_served_us(59 * kMicroseconds);
  control::PastOf b = use("b", 240);
  b.set_served_us(6 * kMicroseconds);
  EXPECT_THAT(reason(a, b), HasSubstr("9.8 times that of others"));
}

TEST_F(WhyText, ServersAreAddedUpAndTheSlowestIsNamed) {
  control::PastOf quick = asked();
  quick.set_waited_us(2 * kMicroseconds);
  control::PastOf slow = asked();
  slow.set_waited_us(48 * kMicroseconds);
  slow.set_held_limit_us(30 * kMicroseconds);
  const auto text = why_text(site({answer("s0", {quick}), answer("s1", {slow})}), "a");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("at 2 servers"));
  EXPECT_THAT(*text, HasSubstr("It got 480.0 MiB in 480 requests, 8.0 MiB/s"));
  EXPECT_THAT(*text, HasSubstr("held by a limit                    25%"));
  EXPECT_THAT(*text, HasSubstr("slowest: s1"));
}

TEST_F(WhyText, ServersThatItDoesNotUseMakeItNoQuicker) {
  const auto text = why_text(site({answer("s0", {asked()}), answer("s1", {use("b", 1)}),
                                   answer("s2", {}), answer("s3", {})}),
                             "a");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("It got 240.0 MiB in 240 requests, 4.0 MiB/s while it was active, "
                               "for 60 s."));
}

TEST_F(WhyText, ALimitThatGivesFarMoreThanItGotIsNotTheOneThatHeldIt) {
  control::PastOf a = asked();  // 4 MiB/s
  a.set_held_limit_us(59 * kMicroseconds);
  a.set_rate(40 << 20);
  EXPECT_THAT(reason(a), HasSubstr("A limit (of its operations, or a coordinator's) held it"));
  a.set_rate(4 << 20);
  EXPECT_THAT(reason(a), HasSubstr("Its own limit, 4 MiB/s at each server, held it"));
}

// Two lanes hold a head each, all the time.
TEST_F(WhyText, PartsAreNeverMoreThanTheTime) {
  control::PastOf a = asked();
  a.set_held_limit_us(60 * kMicroseconds);
  a.set_held_share_us(60 * kMicroseconds);
  const TimeParts parts = time_parts(a);
  EXPECT_DOUBLE_EQ(parts.limit, 0.5);
  EXPECT_DOUBLE_EQ(parts.share, 0.5);
  EXPECT_DOUBLE_EQ(parts.rest, 0);
}

TEST_F(WhyText, ANameThatDidNothingIsAnErrorThatSaysWhatIsKnown) {
  const auto text = why_text(site({answer("s0", {use("b", 1)})}), "other");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message,
            "\"other\" did nothing from 2026-11-22 12:00:00 to 2026-11-22 12:01:00; the history "
            "begins at 2026-11-22 11:00:00");
  SitePast::Server before = answer("s0", {});
  before.reply.set_length_us(0);
  const auto unknown = why_text(site({before}), "a");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("nothing is known of that time"));
  EXPECT_FALSE(why_text(site({}), "a"));
}

TEST_F(WhyText, ANameWithControlCharactersSteersNoTerminal) {
  control::PastOf a = use("\x1b[31mred", 1);
  a.set_asked(true);
  const auto text = why_text(site({answer("s0", {a})}), "x");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, Not(HasSubstr("\x1b")));
}

TEST_F(WhyText, AUserIsNotToldThatOthersDidNothing) {
  SitePast::Server own = answer("s0", {asked()});
  own.reply.set_partial(true);
  own.reply.clear_cost();
  const auto text = why_text(site({own}), "a");
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("what others did is not shown to you"));
  EXPECT_THAT(*text, Not(HasSubstr("alone")));
}

TEST_F(WhyText, FairnessComparesWhatWasGotWithWhatItWasEntitledTo) {
  control::PastOf a = asked(240);
  a.set_cost(a.cost() * 2);  // a request costs as much as its bytes
  a.set_wanted_cost(960 << 20);
  a.set_entitled_cost(960 << 20);
  a.set_wanted_all_us(60 * kMicroseconds);
  a.set_lag_cost(1 << 20);
  a.set_lag_bound_cost(4 << 20);
  EXPECT_EQ(fairness_text(site({answer("s0", {a, use("b", 60)})})),
            "2026-11-22 12:00:00 to 2026-11-22 12:01:00, at s0\n"
            "NAME  WEIGHT   ENTITLED     WANTED  DELIVERED   GOT        LAG    BOUND  RULE\n"
            "a          2  8.0 MiB/s        all  4.0 MiB/s   50%  512.0 KiB  2.0 MiB  rule-a\n"
            "b          2  1.0 MiB/s  1.0 MiB/s  1.0 MiB/s  100%          -        -  rule-b\n"
            "Jain's index of delivered/entitled: 0.900 of 2 virtual PFSes\n");
}

TEST_F(WhyText, FairnessShowsTheLagThatIsNearestToItsBound) {
  control::PastOf near = asked(240);
  near.set_lag_cost(3 << 20);
  near.set_lag_bound_cost(4 << 20);
  control::PastOf far = near;
  far.set_lag_cost(5 << 20);
  far.set_lag_bound_cost(50 << 20);
  for (const auto& answers : {std::vector{answer("s0", {near}), answer("s1", {far})},
                              std::vector{answer("s0", {far}), answer("s1", {near})}}) {
    EXPECT_THAT(fairness_text(site(answers)), HasSubstr("3.0 MiB  4.0 MiB"));
  }
}

}  // namespace
}  // namespace vpfs::words
