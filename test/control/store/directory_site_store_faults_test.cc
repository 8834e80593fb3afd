// DirectorySiteStore on a disk whose calls fail, or whose server loses its power.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/store/directory_site_store.h"
#include "control/store/journal_lines.h"
#include "test/control/store/memory_disk.h"
#include "test/control/store/site_store_rig.h"

namespace vpfs::control {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kRulesOfFirst = "/d/rules-00000000000000000001";

std::unique_ptr<DirectorySiteStore> store_on(MemoryDisk& disk) {
  return std::make_unique<DirectorySiteStore>("/d", std::chrono::seconds(10), disk);
}

// A leader, and all that its records may be, after what it was told.
class LeaderOnBadDisk {
 public:
  // A call that failed is called again up to `retries` times.
  LeaderOnBadDisk(MemoryDisk& disk, int retries) : disk_(disk), retries_(retries) {}

  void lead() {
    store_ = store_on(disk_);
    seen_ = store_->look();
    for (int retry = 0; !seen_ && retry < retries_; ++retry) seen_ = store_->look();
    if (!seen_) return;
    const Leadership own = leadership(seen_->least_term, 2);
    if (!call([&] { return store_->claim(*seen_, own); }, nullptr)) return;
    bool has_loaded = false;
    for (int retry = 0; !has_loaded && retry <= retries_; ++retry) {
      has_loaded = store_->load().has_value();
    }
    if (!has_loaded) return;
    for (const char* record : {"c", "d", "e"}) append(record);
    (void)call([&] { return store_->replace("all"); }, [](Records& all) { all = {"all"}; });
    for (const char* record : {"f", "g"}) append(record);
    (void)call([&] { return store_->confirm(); }, nullptr);
    (void)call([&] { return store_->resign(); }, nullptr);
  }
  [[nodiscard]] const std::vector<Records>& possible() const { return possible_; }

 private:
  template <typename Call, typename Change>
  bool call(Call what, Change change) {
    const std::vector<Records> before = possible_;
    std::vector<Records> after = before;
    if constexpr (!std::is_same_v<Change, std::nullptr_t>) std::ranges::for_each(after, change);
    // Until it has answered, it may have been carried out or not.
    possible_.insert(possible_.end(), after.begin(), after.end());
    bool is_uncertain = false;
    for (int time = 0; time <= retries_; ++time) {
      const SiteStore::Outcome<void> outcome = what();
      if (outcome) {
        possible_ = after;
        return true;
      }
      EXPECT_TRUE(outcome.error().why == SiteStore::Why::unreachable ||
                  outcome.error().why == SiteStore::Why::refused)
          << outcome.error().text;
      is_uncertain = is_uncertain || outcome.error().why == SiteStore::Why::unreachable;
    }
    if (!is_uncertain) possible_ = before;
    EXPECT_EQ(retries_, 0) << "one call failed, and each later one is carried out";
    return false;
  }
  void append(const std::string& record) {
    (void)call([&] { return store_->append(record); },
               [&](Records& all) { all.push_back(record); });
  }

  MemoryDisk& disk_;
  const int retries_;
  std::unique_ptr<DirectorySiteStore> store_;
  SiteStore::Outcome<SiteStore::Seen> seen_;
  std::vector<Records> possible_ = {{"a", "b"}};
};

class DirectoryFaults : public ::testing::Test {
 protected:
  DirectoryFaults() { reset(); }

  void reset() {
    disk_ = {};
    const auto first = store_on(disk_);
    ASSERT_EQ(claim(*first, 1), "done");
    ASSERT_EQ(load(*first), Records());
    ASSERT_EQ(answer(first->append("a")), "done");
    ASSERT_EQ(answer(first->append("b")), "done");
  }
  [[nodiscard]] std::size_t calls_of_a_life() {
    reset();
    const std::size_t before = disk_.calls();
    LeaderOnBadDisk leader(disk_, 0);
    leader.lead();
    EXPECT_EQ(leader.possible(), std::vector<Records>{(Records{"all", "f", "g"})});
    return disk_.calls() - before;
  }
  [[nodiscard]] Records found() {
    const auto next = store_on(disk_);
    const std::string claimed = claim(*next, 3);
    return claimed == "done" ? load(*next) : Records{claimed};
  }

  MemoryDisk disk_;
};

TEST_F(DirectoryFaults, AfterAPowerCutAtAnyCallWhatWasAcknowledgedIsThere) {
  const std::size_t calls = calls_of_a_life();
  ASSERT_GT(calls, 100U);
  for (std::size_t call = 1; call <= calls; ++call) {
    for (const std::size_t bytes : {0U, 9U}) {
      for (const int kept : {0, 1, 2, 3}) {
        reset();
        disk_.cut_power_at(disk_.calls() + call, bytes);
        LeaderOnBadDisk leader(disk_, 0);
        EXPECT_THROW(leader.lead(), PowerCut);
        disk_.restart((kept & 1) != 0, (kept & 2) != 0);
        ASSERT_THAT(leader.possible(), Contains(found()))
            << "call " << call << ", " << bytes << " bytes, kept " << kept;
      }
    }
  }
}

TEST_F(DirectoryFaults, AClaimAndAResignationThatWereAcknowledgedSurviveAPowerCut) {
  const auto first = store_on(disk_);
  ASSERT_EQ(claim(*first, 7), "done");
  const auto second = store_on(disk_);
  ASSERT_EQ(claim(*second, 8), "done");
  disk_.restart(false, false);
  EXPECT_EQ(answer(first->confirm()), "lost");
  EXPECT_EQ(answer(second->confirm()), "done");
  ASSERT_EQ(answer(second->resign()), "done");
  disk_.restart(false, false);
  const auto seen = store_on(disk_)->look();
  ASSERT_TRUE(seen && seen->leader);
  EXPECT_EQ(seen->leader->incarnation, 8U);
  EXPECT_TRUE(seen->is_vacant);
  EXPECT_EQ(seen->least_term, 4U);
}

TEST_F(DirectoryFaults, AnyCallThatFailsOnceIsOneRecordTheLessAtMost) {
  const std::size_t calls = calls_of_a_life();
  for (const int error : {ENOSPC, EIO, ESTALE}) {
    for (std::size_t call = 1; call <= calls; ++call) {
      for (const std::size_t bytes : {0U, 9U}) {
        reset();
        disk_.fail_call(disk_.calls() + call, {.error = error, .bytes = bytes});
        LeaderOnBadDisk leader(disk_, 0);
        leader.lead();
        disk_.stop_failing();
        ASSERT_THAT(leader.possible(), Contains(found()))
            << "call " << call << ", error " << error << ", " << bytes << " bytes";
      }
    }
  }
}

TEST_F(DirectoryFaults, ACallThatIsRepeatedAfterAFailureIsCarriedOutOnce) {
  const std::size_t calls = calls_of_a_life();
  for (const int error : {ENOSPC, EIO, ESTALE}) {
    for (std::size_t call = 1; call <= calls; ++call) {
      for (const std::size_t bytes : {0U, 9U}) {
        reset();
        disk_.fail_call(disk_.calls() + call, {.error = error, .bytes = bytes});
        LeaderOnBadDisk leader(disk_, 3);
        leader.lead();
        disk_.stop_failing();
        ASSERT_EQ(leader.possible(), std::vector<Records>{(Records{"all", "f", "g"})});
        ASSERT_EQ(found(), (Records{"all", "f", "g"}))
            << "call " << call << ", error " << error << ", " << bytes << " bytes";
      }
    }
  }
}

TEST_F(DirectoryFaults, AServerThatDoesNotAnswerForLongLosesNothing) {
  const std::size_t calls = calls_of_a_life();
  for (std::size_t call = 1; call <= calls; ++call) {
    reset();
    disk_.fail_all_from(disk_.calls() + call, ETIMEDOUT);
    LeaderOnBadDisk leader(disk_, 0);
    leader.lead();
    disk_.stop_failing();
    ASSERT_THAT(leader.possible(), Contains(found())) << "call " << call;
  }
}

TEST_F(DirectoryFaults, AFullDiskRefusesRecordsAndClaimsAndSaysSo) {
  const auto leader = store_on(disk_);
  ASSERT_EQ(claim(*leader, 2), "done");
  ASSERT_EQ(load(*leader), (Records{"a", "b"}));
  const auto standby = store_on(disk_);
  const auto seen = standby->look();
  ASSERT_TRUE(seen);
  const std::string rules = "/d/rules-00000000000000000002";
  const std::string before = disk_.bytes_of(rules);
  // The first two calls read the claim, two end and the third opens the records; then comes
  // write().
  for (std::size_t call = 1; call < 40; ++call) {
    disk_.fail_call(disk_.calls() + call, {.error = ENOSPC});
  }
  EXPECT_THAT(answer(standby->claim(*seen, leadership(3, 3))),
              AllOf(HasSubstr("refused: "), HasSubstr("No space left")));
  disk_.stop_failing();
  // The calls of an append: open, read and read for the first look, open, size, write, fsync.
  for (const std::size_t call : {6U, 7U}) {
    disk_.fail_call(disk_.calls() + call, {.error = ENOSPC, .bytes = 5});
    EXPECT_THAT(answer(leader->append("c")),
                AllOf(HasSubstr("refused: " + rules + ": cannot be "), HasSubstr("No space left")));
    disk_.stop_failing();
    EXPECT_EQ(disk_.bytes_of(rules), before) << "nothing of it is left";
  }
  EXPECT_EQ(answer(leader->append("d")), "done");
  EXPECT_EQ(disk_.bytes_of(rules), before + journal_line("d"));
}

TEST_F(DirectoryFaults, WhereARecordMayBeLeftTheAnswerIsNotRefused) {
  const auto leader = store_on(disk_);
  ASSERT_EQ(claim(*leader, 2), "done");
  ASSERT_EQ(load(*leader), (Records{"a", "b"}));
  // The fsync of the record fails, and so does taking it away.
  disk_.fail_all_from(disk_.calls() + 7, ENOSPC);
  EXPECT_THAT(answer(leader->append("c")), HasSubstr("unreachable: "));
  EXPECT_THAT(answer(leader->append("c")), HasSubstr("refused: "));
  disk_.stop_failing();
  EXPECT_EQ(answer(leader->append("c")), "done");
  EXPECT_EQ(found(), (Records{"a", "b", "c"}));
}

TEST_F(DirectoryFaults, AMissingRightIsRefusedAndAStaleHandleIsUnreachable) {
  const std::vector<std::pair<int, const char*>> errors = {
      {EACCES, "refused: "},     {EROFS, "refused: "},      {EDQUOT, "refused: "},
      {EIO, "unreachable: "},    {ESTALE, "unreachable: "}, {ETIMEDOUT, "unreachable: "},
      {ENOENT, "unreachable: "},
  };
  for (const auto& [error, why] : errors) {
    const auto store = store_on(disk_);
    disk_.fail_all_from(disk_.calls() + 1, error);
    const auto seen = store->look();
    disk_.stop_failing();
    ASSERT_FALSE(seen);
    EXPECT_THAT(name_of(seen.error()), HasSubstr(std::string(why) + "/d: cannot be read")) << error;
  }
}

TEST_F(DirectoryFaults, ConfirmingNeedsNoRoomOnAFullDisk) {
  const auto leader = store_on(disk_);
  ASSERT_EQ(claim(*leader, 2), "done");
  const std::string beat = disk_.bytes_of("/d/beat-00000000000000000002");
  ASSERT_EQ(answer(leader->confirm()), "done");
  EXPECT_EQ(disk_.bytes_of("/d/beat-00000000000000000002").size(), beat.size());
  EXPECT_NE(disk_.bytes_of("/d/beat-00000000000000000002"), beat);
}

TEST_F(DirectoryFaults, ThePredecessorsFilesStayAsTheyAre) {
  const std::string before = disk_.bytes_of(kRulesOfFirst);
  EXPECT_EQ(found(), (Records{"a", "b"}));
  EXPECT_EQ(disk_.bytes_of(kRulesOfFirst), before);
}

}  // namespace
}  // namespace vpfs::control
