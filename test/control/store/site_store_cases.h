#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/store/leadership.h"
#include "control/store/site_store.h"
#include "test/control/store/site_store_rig.h"

// What holds for each SiteStore. A test of a store has a rig for it and
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyStore, SiteStoreCases, MyRig);
//
// Stores without standbys have one handle at a time: a case that needs two at once is skipped.
namespace vpfs::control {

template <typename Rig>
class SiteStoreCases : public ::testing::Test {
 protected:
  Rig rig_;
};

TYPED_TEST_SUITE_P(SiteStoreCases);

TYPED_TEST_P(SiteStoreCases, AtFirstNobodyHasEverLed) {
  const auto store = this->rig_.open();
  const auto seen = store->look();
  ASSERT_TRUE(seen) << seen.error().text;
  EXPECT_FALSE(seen->leader);
  EXPECT_TRUE(seen->is_vacant);
  EXPECT_EQ(seen->least_term, 1U);
  EXPECT_GT(store->traits().lease, Duration::zero());
}

TYPED_TEST_P(SiteStoreCases, TheFirstLeaderLoadsNothing) {
  const auto store = this->rig_.open();
  ASSERT_EQ(claim(*store, 1), "done");
  EXPECT_EQ(load(*store), Records());
  EXPECT_FALSE(store->wants_replacing());
  EXPECT_EQ(answer(store->confirm()), "done");
}

TYPED_TEST_P(SiteStoreCases, OthersSeeEveryWordOfTheLeadership) {
  auto store = this->rig_.open();
  const auto nobody = store->look();
  ASSERT_TRUE(nobody);
  const Leadership own = {.term = 17,
                          .lease = std::chrono::milliseconds(1500),
                          .transit = std::chrono::microseconds(250),
                          .incarnation = ~std::uint64_t{0},
                          .addresses = {"10.0.0.1:4711", "unix:/run/\"q\" \\ é.sock"},
                          .has_resigned = false};
  ASSERT_EQ(answer(store->claim(*nobody, own)), "done");
  const auto other = another(this->rig_, store);
  const auto seen = other->look();
  ASSERT_TRUE(seen) << seen.error().text;
  ASSERT_TRUE(seen->leader);
  EXPECT_EQ(*seen->leader, own);
  EXPECT_EQ(seen->least_term, 18U);
  EXPECT_EQ(seen->is_vacant, !other->traits().has_standbys);
}

TYPED_TEST_P(SiteStoreCases, AClaimWithAnOldSightIsLost) {
  const auto store = this->rig_.open();
  const auto old = store->look();
  ASSERT_TRUE(old);
  ASSERT_EQ(claim(*store, 1), "done");
  EXPECT_EQ(answer(store->claim(*old, leadership(5, 2))), "lost");
  EXPECT_EQ(answer(store->confirm()), "done") << "the office did not change";
  ASSERT_TRUE(store->look());
  EXPECT_EQ(store->look()->leader->term, 1U);
}

TYPED_TEST_P(SiteStoreCases, AnOfficeThatIsTakenCanBeClaimedToo) {
  const auto old = this->rig_.open();
  if (!old->traits().has_standbys) GTEST_SKIP() << "one handle at a time";
  const auto fresh = this->rig_.open();
  ASSERT_EQ(claim(*old, 1), "done");
  ASSERT_EQ(claim(*fresh, 2), "done");
  EXPECT_EQ(answer(old->confirm()), "lost");
  EXPECT_EQ(answer(fresh->confirm()), "done");
  ASSERT_EQ(claim(*old, 1), "done") << "a former leader may come back";
  EXPECT_EQ(answer(fresh->confirm()), "lost");
  EXPECT_EQ(answer(old->confirm()), "done");
}

TYPED_TEST_P(SiteStoreCases, OneClaimOfTwoAtOnceWins) {
  constexpr int kRounds = 50;
  std::array<std::unique_ptr<SiteStore>, 2> stores = {this->rig_.open(), nullptr};
  if (!stores[0]->traits().has_standbys) GTEST_SKIP() << "one handle at a time";
  stores[1] = this->rig_.open();
  for (int round = 0; round < kRounds; ++round) {
    std::array<std::string, 2> answers;
    std::barrier both(2);
    const auto race = [&](std::size_t index) {
      SiteStore& store = *stores[index];
      const auto seen = store.look();
      both.arrive_and_wait();
      if (!seen) return;
      // Others than the least terms are allowed.
      const std::uint64_t term = seen->least_term + index * static_cast<std::size_t>(round % 2);
      answers[index] = answer(store.claim(*seen, leadership(term, index + 1)));
    };
    std::thread other(race, 1);
    race(0);
    other.join();
    ASSERT_THAT(answers, ::testing::UnorderedElementsAre("done", "lost")) << "round " << round;
    const std::size_t winner = answers[0] == "done" ? 0 : 1;
    for (const auto& store : stores) {
      const auto seen = store->look();
      ASSERT_TRUE(seen && seen->leader);
      EXPECT_EQ(seen->leader->incarnation, winner + 1);
    }
    EXPECT_EQ(answer(stores[winner]->confirm()), "done");
  }
}

TYPED_TEST_P(SiteStoreCases, ASuccessorLoadsWhatWasAppendedInItsOrder) {
  auto store = this->rig_.open();
  Records all;
  for (std::uint64_t leader = 1; leader <= 12; ++leader) {
    ASSERT_EQ(claim(*store, leader), "done");
    ASSERT_EQ(load(*store), all);
    for (int record = 0; record < 3; ++record) {
      all.push_back(R"({"leader":)" + std::to_string(leader) + "}");
      ASSERT_EQ(answer(store->append(all.back())), "done");
    }
    store = another(this->rig_, store);
  }
}

TYPED_TEST_P(SiteStoreCases, ALeaderThatDiesBeforeItLoadsLosesNothing) {
  auto store = this->rig_.open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_EQ(answer(store->append("one")), "done");
  for (std::uint64_t leader = 2; leader < 20; ++leader) {
    store = another(this->rig_, store);
    ASSERT_EQ(claim(*store, leader), "done");
  }
  EXPECT_EQ(load(*store), Records{"one"});
}

TYPED_TEST_P(SiteStoreCases, EachCallOfAFormerLeaderIsLost) {
  const auto old = this->rig_.open();
  if (!old->traits().has_standbys) GTEST_SKIP() << "one handle at a time";
  ASSERT_EQ(claim(*old, 1), "done");
  ASSERT_EQ(load(*old), Records());
  ASSERT_EQ(answer(old->append("one")), "done");
  const auto fresh = this->rig_.open();
  ASSERT_EQ(claim(*fresh, 2), "done");
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(answer(old->append("late")), "lost");
    EXPECT_EQ(answer(old->replace("late")), "lost");
    EXPECT_EQ(answer(old->confirm()), "lost");
    EXPECT_EQ(answer(old->resign()), "lost");
    EXPECT_EQ(load(*old), Records{"lost"});
    if (time == 0) {
      EXPECT_EQ(load(*fresh), Records{"one"});
    }
  }
  EXPECT_EQ(answer(fresh->append("two")), "done");
  const auto seen = old->look();
  ASSERT_TRUE(seen && seen->leader);
  EXPECT_EQ(seen->leader->incarnation, 2U);
  EXPECT_FALSE(seen->is_vacant);
  const auto third = this->rig_.open();
  ASSERT_EQ(claim(*third, 3), "done");
  EXPECT_EQ(load(*third), (Records{"one", "two"}));
}

TYPED_TEST_P(SiteStoreCases, ARecordThatReplacedOthersComesFirst) {
  auto store = this->rig_.open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_EQ(answer(store->append("one")), "done");
  ASSERT_EQ(answer(store->append("two")), "done");
  ASSERT_EQ(answer(store->replace("both")), "done");
  ASSERT_EQ(answer(store->append("three")), "done");
  store = another(this->rig_, store);
  ASSERT_EQ(claim(*store, 2), "done");
  EXPECT_EQ(load(*store), (Records{"both", "three"}));
  ASSERT_EQ(answer(store->replace("all")), "done");
  store = another(this->rig_, store);
  ASSERT_EQ(claim(*store, 3), "done");
  EXPECT_EQ(load(*store), Records{"all"});
}

TYPED_TEST_P(SiteStoreCases, WhatHasGrownManyTimesOverWantsReplacing) {
  auto store = this->rig_.open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  int appended = 0;
  for (; !store->wants_replacing() && appended < 1000; ++appended) {
    ASSERT_EQ(answer(store->append(std::string(10'000, 'x'))), "done");
  }
  EXPECT_GT(appended, 3);
  EXPECT_LT(appended, 1000);
  ASSERT_EQ(answer(store->replace("small")), "done");
  EXPECT_FALSE(store->wants_replacing());
}

TYPED_TEST_P(SiteStoreCases, AfterResigningTheOfficeIsVacant) {
  auto store = this->rig_.open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_EQ(answer(store->append("one")), "done");
  ASSERT_EQ(answer(store->resign()), "done");
  store = another(this->rig_, store);
  const auto seen = store->look();
  ASSERT_TRUE(seen && seen->leader);
  EXPECT_TRUE(seen->is_vacant);
  EXPECT_TRUE(seen->leader->has_resigned);
  EXPECT_EQ(seen->leader->term, 1U);
  EXPECT_EQ(seen->least_term, 2U);
  ASSERT_EQ(claim(*store, 2), "done");
  EXPECT_EQ(load(*store), Records{"one"});
  const auto mine = store->look();
  ASSERT_TRUE(mine && mine->leader);
  EXPECT_FALSE(mine->leader->has_resigned);
  EXPECT_EQ(mine->is_vacant, !store->traits().has_standbys);
}

TYPED_TEST_P(SiteStoreCases, BeatsChangeWithEachConfirmation) {
  const auto store = this->rig_.open();
  if (!store->traits().shows_beats) GTEST_SKIP() << "it has no beats";
  const auto other = this->rig_.open();
  ASSERT_EQ(claim(*store, 1), "done");
  std::optional<std::uint64_t> before;
  for (int beat = 0; beat < 5; ++beat) {
    const auto seen = other->look();
    ASSERT_TRUE(seen);
    EXPECT_NE(seen->beat, before);
    before = seen->beat;
    EXPECT_EQ(other->look()->beat, before) << "it stays, without a confirmation";
    ASSERT_EQ(answer(store->confirm()), "done");
  }
}

TYPED_TEST_P(SiteStoreCases, ARecordHasAnyTextAndAMebibyte) {
  Records all = {R"({"words":"\"\\ \u0000 /"})",
                 "äöü €  \U0001F40C \u202E",
                 "{",
                 "\"",
                 "'%s%n'",
                 "a b  c ",
                 " ",
                 "a\x7f",  // JSON may have it as it is
                 "x=y,z;w:\\n\\"};
  std::string large(std::size_t{1} << 20, 'x');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(' ' + i * 7 % 95);
  all.push_back(large);
  all.emplace_back("after");
  auto store = this->rig_.open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  for (const std::string& record : all) ASSERT_EQ(answer(store->append(record)), "done");
  store = another(this->rig_, store);
  ASSERT_EQ(claim(*store, 2), "done");
  EXPECT_TRUE(load(*store) == all);
  ASSERT_EQ(answer(store->replace(large)), "done");
  store = another(this->rig_, store);
  ASSERT_EQ(claim(*store, 3), "done");
  EXPECT_TRUE(load(*store) == Records{large});
}

TYPED_TEST_P(SiteStoreCases, LoadedRecordsHaveAPlaceForErrors) {
  auto store = this->rig_.open();
  ASSERT_EQ(claim(*store, 1), "done");
  ASSERT_EQ(load(*store), Records());
  ASSERT_EQ(answer(store->append("one")), "done");
  store = another(this->rig_, store);
  ASSERT_EQ(claim(*store, 2), "done");
  const auto loaded = store->load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->records.size(), 1U);
  EXPECT_FALSE(loaded->records[0].place.empty());
  EXPECT_TRUE(loaded->notes.empty());
}

TYPED_TEST_P(SiteStoreCases, WaitingEndsWithItsPatienceOrAtOnceIfCancelled) {
  const auto store = this->rig_.open();
  store->wait(std::chrono::milliseconds(1));
  std::thread other([&] { store->cancel(); });
  store->wait(std::chrono::hours(1));
  other.join();
  store->wait(std::chrono::hours(1));
}

// A leader appends while another takes the office from it.
TYPED_TEST_P(SiteStoreCases, WhatWasAppendedBeforeAClaimIsThereAndNothingElse) {
  constexpr std::uint64_t kRounds = 25;
  std::array<std::unique_ptr<SiteStore>, 2> stores = {this->rig_.open(), nullptr};
  if (!stores[0]->traits().has_standbys) GTEST_SKIP() << "one handle at a time";
  stores[1] = this->rig_.open();
  Records all;
  ASSERT_EQ(claim(*stores[0], 1), "done");
  ASSERT_EQ(load(*stores[0]), all);
  std::mt19937_64 random(7);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    SiteStore& old = *stores[round % 2];
    SiteStore& fresh = *stores[(round + 1) % 2];
    Records acknowledged;
    std::string last;
    std::string ending;
    std::atomic<bool> is_claimed = false;
    std::barrier begun(2);
    std::thread appender([&] {
      bool is_late = false;  // the append after the claim has to end it
      for (int record = 0; ending.empty() && !is_late; ++record) {
        is_late = is_claimed;
        if (record == 1) (void)begun.arrive();
        last = std::to_string(round) + "." + std::to_string(record);
        const std::string answered = answer(old.append(last));
        if (answered != "done") {
          ending = answered;
        } else {
          acknowledged.push_back(last);
        }
        if (record == 0 && answered != "done") (void)begun.arrive();
      }
    });
    begun.arrive_and_wait();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    const std::string claimed = claim(fresh, round + 2);
    const Records loaded = load(fresh);
    is_claimed = true;
    appender.join();
    ASSERT_EQ(claimed, "done");
    ASSERT_EQ(ending, "lost");
    all.insert(all.end(), acknowledged.begin(), acknowledged.end());
    Records with_last = all;  // it began before the claim
    with_last.push_back(last);
    ASSERT_TRUE(loaded == all || loaded == with_last) << "round " << round;
    all = loaded;
  }
}

// The life of three handles, chosen at random, beside a model.
TYPED_TEST_P(SiteStoreCases, AnyHistoryGivesWhatAPlainModelHas) {
  for (std::uint64_t seed = 1; seed <= 6 && !this->HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TypeParam rig;
    SiteStoreHistory(rig, seed).live(120);
  }
}

// Leaders are killed in the middle of what they do.
TYPED_TEST_P(SiteStoreCases, WhatWasAcknowledgedSurvivesKill9) {
  if (!this->rig_.can_fork()) GTEST_SKIP() << "its client does not survive fork()";
  std::mt19937_64 random(11);
  Records all;
  for (std::uint64_t round = 1; round <= 30; ++round) {
    const std::string prefix = "r" + std::to_string(round) + ".";
    const KilledLeader killed(this->rig_, round, random);
    ASSERT_FALSE(killed.acknowledged().empty()) << "it said nothing";
    for (std::size_t record = 0; record < killed.acknowledged().size(); ++record) {
      ASSERT_EQ(killed.acknowledged()[record], prefix + std::to_string(record));
      all.push_back(killed.acknowledged()[record]);
    }
    Records with_next = all;
    with_next.push_back(prefix + std::to_string(killed.acknowledged().size()));
    const auto next = this->rig_.open();
    ASSERT_EQ(claim(*next, 1000 + round), "done");
    const Records loaded = load(*next);
    ASSERT_TRUE(loaded == all || loaded == with_next)
        << "round " << round << ": " << loaded.size() << " and not " << all.size() << ": "
        << (loaded.empty() ? "" : loaded.back());
    all = loaded;
  }
}

REGISTER_TYPED_TEST_SUITE_P(SiteStoreCases, AtFirstNobodyHasEverLed, TheFirstLeaderLoadsNothing,
                            OthersSeeEveryWordOfTheLeadership, AClaimWithAnOldSightIsLost,
                            AnOfficeThatIsTakenCanBeClaimedToo, OneClaimOfTwoAtOnceWins,
                            ASuccessorLoadsWhatWasAppendedInItsOrder,
                            ALeaderThatDiesBeforeItLoadsLosesNothing, EachCallOfAFormerLeaderIsLost,
                            ARecordThatReplacedOthersComesFirst,
                            WhatHasGrownManyTimesOverWantsReplacing,
                            AfterResigningTheOfficeIsVacant, BeatsChangeWithEachConfirmation,
                            ARecordHasAnyTextAndAMebibyte, LoadedRecordsHaveAPlaceForErrors,
                            WaitingEndsWithItsPatienceOrAtOnceIfCancelled,
                            WhatWasAppendedBeforeAClaimIsThereAndNothingElse,
                            AnyHistoryGivesWhatAPlainModelHas, WhatWasAcknowledgedSurvivesKill9);

}  // namespace vpfs::control
