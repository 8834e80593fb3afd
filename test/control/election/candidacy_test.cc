// When a standby claims the office, and from when on its caps are safe, in virtual time.

#include "control/election/candidacy.h"

#include <chrono>
#include <optional>

#include <gtest/gtest.h>

namespace vpfs::election {
namespace {

using namespace std::chrono_literals;
using control::Leadership;
using control::SiteStore;

constexpr SiteStore::Traits kBeats = {.has_standbys = true, .lease = 4s, .shows_beats = true};
constexpr SiteStore::Traits kLeases = {
    .has_standbys = true, .lease = 4s, .vacancy_is_certain = true};

TimePoint at(Duration since) {
  return TimePoint(1000s) + since;
}

SiteStore::Seen led(std::uint64_t term, std::uint64_t beat = 0) {
  return {.leader = Leadership{.term = term, .lease = 1s, .transit = 500ms},
          .is_vacant = false,
          .beat = beat,
          .version = std::to_string(term),
          .least_term = term + 1};
}
SiteStore::Seen vacant_after(std::uint64_t term, bool has_resigned) {
  SiteStore::Seen seen = led(term);
  seen.is_vacant = true;
  seen.leader->has_resigned = has_resigned;
  return seen;
}

TEST(CandidacyTest, ClaimsNothingThatItHasNotSeen) {
  const Candidacy candidacy(kLeases);
  EXPECT_FALSE(candidacy.claims(at(0s)));
  EXPECT_EQ(candidacy.leader(), nullptr);
}

TEST(CandidacyTest, ClaimsAVacantOfficeAtOnce) {
  Candidacy candidacy(kLeases);
  candidacy.saw({}, at(0s), at(0s));
  EXPECT_TRUE(candidacy.claims(at(0s)));
  EXPECT_EQ(candidacy.clear_from(*candidacy.seen(), at(0s)), TimePoint::min());
}

TEST(CandidacyTest, LeavesALeaderAloneWhoseStoreSaysThatItLeads) {
  Candidacy candidacy(kLeases);
  for (int i = 0; i < 100; ++i) {
    candidacy.saw(led(3), at(i * 1s), at(i * 1s));
    EXPECT_FALSE(candidacy.claims(at(i * 1s)));
  }
  EXPECT_EQ(candidacy.leader()->term, 3U);
}

TEST(CandidacyTest, WaitsForALeaseWithoutABeat) {
  Candidacy candidacy(kBeats);
  candidacy.saw(led(3, 7), at(0s), at(0s));
  candidacy.saw(led(3, 8), at(1s), at(1s));
  for (const Duration since : {2000ms, 3000ms, 5000ms, 5400ms}) {
    candidacy.saw(led(3, 8), at(since), at(since));
    EXPECT_FALSE(candidacy.claims(at(since)));
  }
  candidacy.saw(led(3, 8), at(5500ms), at(5500ms));
  EXPECT_TRUE(candidacy.claims(at(5500ms)));
}

TEST(CandidacyTest, AStoreThatWasNotReadShowsNothing) {
  Candidacy candidacy(kBeats);
  candidacy.saw(led(3, 8), at(0s), at(0s));
  EXPECT_FALSE(candidacy.claims(at(60s))) << "the leader may have beaten meanwhile";
  candidacy.saw(led(3, 9), at(60s), at(60s));
  EXPECT_FALSE(candidacy.claims(at(61s)));
  // An answer that was asked for early says nothing of the time that it took.
  candidacy.saw(led(3, 9), at(61s), at(70s));
  EXPECT_FALSE(candidacy.claims(at(70s)));
  candidacy.saw(led(3, 9), at(70s), at(70s));
  EXPECT_TRUE(candidacy.claims(at(70s)));
}

TEST(CandidacyTest, ClaimsFromALeaderWhoseProcessIsGoneOnceItLookedAgain) {
  for (const SiteStore::Traits& traits : {kBeats, kLeases}) {
    Candidacy candidacy(traits);
    candidacy.saw(led(3), at(0s), at(0s));
    candidacy.found_alive(3);
    candidacy.found_gone(3, at(100ms));
    EXPECT_FALSE(candidacy.claims(at(100ms))) << "another standby may have been quicker";
    candidacy.saw(led(3), at(110ms), at(120ms));
    EXPECT_TRUE(candidacy.claims(at(120ms)));
  }
}

// Its port is closed while a standby becomes the leader.
TEST(CandidacyTest, ALeaderThatHasNotAnsweredYetIsNotGone) {
  Candidacy candidacy(kLeases);
  candidacy.saw(led(3), at(0s), at(0s));
  candidacy.found_gone(3, at(100ms));
  candidacy.saw(led(3), at(110ms), at(120ms));
  EXPECT_FALSE(candidacy.claims(at(120ms)));
  candidacy.found_alive(2);
  candidacy.found_gone(3, at(200ms));
  candidacy.saw(led(3), at(210ms), at(220ms));
  EXPECT_FALSE(candidacy.claims(at(220ms)));
}

TEST(CandidacyTest, AnotherLeaderIsNotGone) {
  Candidacy candidacy(kLeases);
  candidacy.saw(led(3), at(0s), at(0s));
  candidacy.found_alive(3);
  candidacy.found_gone(3, at(100ms));
  candidacy.saw(led(4), at(110ms), at(120ms));
  EXPECT_FALSE(candidacy.claims(at(120ms)));
  candidacy.found_gone(3, at(130ms));  // told late
  candidacy.saw(led(4), at(140ms), at(150ms));
  EXPECT_FALSE(candidacy.claims(at(150ms)));
  candidacy.found_alive(4);
  candidacy.found_gone(4, at(200ms));
  candidacy.found_alive(4);
  candidacy.saw(led(4), at(210ms), at(220ms));
  EXPECT_FALSE(candidacy.claims(at(220ms)));
}

// A firewall that refuses connections between two coordinators must not make them take turns.
TEST(CandidacyTest, OneThatHasJustLostBelievesNotThatTheOtherIsGone) {
  Candidacy candidacy(kLeases);
  candidacy.lost(at(0s));
  candidacy.saw(led(4), at(0s), at(0s));
  candidacy.found_alive(4);
  candidacy.found_gone(4, at(100ms));
  candidacy.saw(led(4), at(1s), at(1s));
  EXPECT_FALSE(candidacy.claims(at(1s)));
  EXPECT_TRUE(candidacy.claims(at(4s)));
  Candidacy vacant(kLeases);
  vacant.lost(at(0s));
  vacant.saw(vacant_after(4, false), at(100ms), at(100ms));
  EXPECT_TRUE(vacant.claims(at(100ms))) << "the store is believed";
}

TEST(CandidacyTest, CapsAreClearWhenThoseOfTheLeaderBeforeMustHaveEnded) {
  const Candidacy beats(kBeats);
  const Candidacy leases(kLeases);
  // It may have confirmed its office a moment ago: a lease of that, then of its cycles.
  EXPECT_EQ(beats.clear_from(led(3), at(0s)), at(5500ms));
  EXPECT_EQ(leases.clear_from(led(3), at(0s)), at(5500ms));
  // The lease of its office had ended.
  EXPECT_EQ(leases.clear_from(vacant_after(3, false), at(0s)), at(1500ms));
  EXPECT_EQ(beats.clear_from(vacant_after(3, false), at(0s)), at(5500ms));
  // It has said itself that it sends nothing more.
  EXPECT_EQ(beats.clear_from(vacant_after(3, true), at(0s)), at(1500ms));
  EXPECT_EQ(leases.clear_from(vacant_after(3, true), at(0s)), at(1500ms));
}

TEST(CandidacyTest, AStoreOfOneProcessHasNoLeaderBesides) {
  Candidacy candidacy({.has_standbys = false, .lease = 10'000h});
  EXPECT_FALSE(candidacy.claims(at(0s)));
  candidacy.saw(led(3), at(0s), at(0s));
  EXPECT_TRUE(candidacy.claims(at(0s)));
  EXPECT_EQ(candidacy.clear_from(led(3), at(0s)), at(1500ms));
}

}  // namespace
}  // namespace vpfs::election
