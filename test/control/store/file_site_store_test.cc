#include "control/store/file_site_store.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/store/journal_lines.h"
#include "test/control/store/memory_disk.h"
#include "test/control/store/site_store_cases.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FileRig final : public SiteStoreRig {
 public:
  std::unique_ptr<SiteStore> open() override {
    auto store = FileSiteStore::open(scratch_.path() / "rules.journal", calls_);
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }

 private:
  test::TemporaryDirectory scratch_;
  FileCalls calls_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(File, SiteStoreCases, FileRig);

const std::string kTermPath = kJournalPath + ".term";

std::string term_line(std::uint64_t term, bool has_resigned = false) {
  Leadership written = leadership(term, 1);
  written.has_resigned = has_resigned;
  return journal_line(to_record(written));
}

// A store on a disk whose bytes the test chooses.
class FileSiteStoreTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<FileSiteStore> store() {
    auto opened = FileSiteStore::open(kJournalPath, disk_);
    EXPECT_TRUE(opened);
    return *std::move(opened);
  }
  [[nodiscard]] SiteStore::Outcome<SiteStore::Seen> seen_with(const std::string& bytes) {
    disk_.put(kTermPath, bytes);
    return store()->look();
  }
  [[nodiscard]] std::string problem_of(const std::string& bytes) {
    const auto seen = seen_with(bytes);
    return seen ? "none" : name_of(seen.error());
  }

  MemoryDisk disk_;
};

TEST_F(FileSiteStoreTest, ItHasNoStandbysAndALeaseThatNeverEnds) {
  const SiteStore::Traits traits = store()->traits();
  EXPECT_FALSE(traits.has_standbys);
  EXPECT_FALSE(traits.shows_beats);
  EXPECT_FALSE(traits.vacancy_is_certain);
  EXPECT_EQ(traits.lease, 8760h);
}

TEST_F(FileSiteStoreTest, ATermIsThereAfterAPowerCutAtAnyCallOrItWasNeverBegun) {
  for (const bool keeps : {false, true}) {
    for (std::size_t call = 1; call < 100; ++call) {
      disk_ = {};
      disk_.put(kTermPath, term_line(6) + term_line(7));
      disk_.cut_power_at(disk_.calls() + call, 20);
      bool begun = false;
      try {
        begun = claim(*store(), 1) == "done";
        ASSERT_TRUE(begun);
      } catch (const PowerCut&) {
      }
      disk_.restart(keeps, keeps);
      const auto seen = store()->look();
      ASSERT_TRUE(seen) << seen.error().text;
      ASSERT_TRUE(seen->leader);
      EXPECT_GE(seen->leader->term, begun ? 8U : 7U);
      EXPECT_GT(seen->least_term, seen->leader->term);
      if (begun) {
        EXPECT_EQ(*seen->leader, leadership(8, 1));
        break;
      }
    }
  }
}

TEST_F(FileSiteStoreTest, ALastLineThatIsCutAnywhereCountsAsUsed) {
  const std::string sound = term_line(5) + term_line(6);
  for (std::size_t size = 1; size < term_line(7).size(); ++size) {
    disk_.put(kTermPath, sound + term_line(7).substr(0, size));
    const auto cut = store();
    const auto seen = cut->look();
    ASSERT_TRUE(seen) << seen.error().text;
    EXPECT_EQ(seen->leader->term, 6U) << size;
    EXPECT_EQ(seen->least_term, 8U) << size;
    EXPECT_EQ(cut->look()->least_term, 8U) << "a second look shows the same";
    ASSERT_EQ(claim(*cut, 1), "done");
    const auto loaded = cut->load();
    ASSERT_TRUE(loaded);
    ASSERT_EQ(loaded->notes.size(), 1U) << "an administrator reads of it";
    EXPECT_THAT(loaded->notes[0], HasSubstr(kTermPath + ":3: the last line"));
    EXPECT_EQ(store()->look()->leader->term, 8U);
  }
  EXPECT_THAT(problem_of(term_line(1).substr(0, 30)), HasSubstr("damaged: "))
      << "a file that was there and has no whole line is damaged";
}

TEST_F(FileSiteStoreTest, AnyChangedByteOfALineBeforeIsRefusedWithItsPlace) {
  const std::string sound = term_line(5) + term_line(6) + term_line(7);
  const std::size_t begin = term_line(5).size();
  for (std::size_t at = begin; at + 1 < begin + term_line(6).size(); ++at) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    EXPECT_THAT(problem_of(bytes),
                AllOf(HasSubstr("damaged: " + kTermPath + ":2: "), HasSubstr("--term")))
        << at;
  }
}

TEST_F(FileSiteStoreTest, DamageIsFoundAtEachLookUntilTheFileIsRestored) {
  disk_.put(kTermPath, "rubbish\n" + term_line(7));
  const auto damaged = store();
  for (int time = 0; time < 3; ++time) {
    EXPECT_THAT(claim(*damaged, 1), HasSubstr("damaged: " + kTermPath + ":1"));
  }
  disk_.put(kTermPath, term_line(7));
  EXPECT_EQ(claim(*damaged, 1), "done");
  EXPECT_EQ(damaged->look()->leader->term, 8U);
}

TEST_F(FileSiteStoreTest, TermsOnlyGrowAndEachResignsOnce) {
  EXPECT_THAT(problem_of(term_line(5) + term_line(7) + term_line(6)),
              HasSubstr(kTermPath + ":3: the term 6 follows 7"));
  EXPECT_THAT(problem_of(term_line(5) + term_line(5)), HasSubstr(":2: the term 5 follows 5"));
  EXPECT_THAT(problem_of(term_line(5, true) + term_line(5, true)),
              HasSubstr(":2: the term 5 follows 5"));
  EXPECT_THAT(problem_of(term_line(5) + term_line(4, true)), HasSubstr(":2: the term 4 follows 5"));
  EXPECT_EQ(problem_of(term_line(5) + term_line(5, true) + term_line(6)), "none");
}

TEST_F(FileSiteStoreTest, ARecordThatIsNotALeadershipIsNamed) {
  EXPECT_THAT(problem_of(term_line(1) + journal_line(R"({"v":2,"n":17,"op":"start"})")),
              HasSubstr("damaged: " + kTermPath + ":2: it has the format 2"));
}

TEST_F(FileSiteStoreTest, AFileOfTheVersionBeforeIsRead) {
  const auto seen =
      seen_with(journal_line(R"({"lease_us":1000000,"term":7,"transit_us":500000,"v":1})"));
  ASSERT_TRUE(seen && seen->leader);
  EXPECT_EQ(*seen->leader, (Leadership{.term = 7, .lease = 1s, .transit = 500ms}));
  EXPECT_EQ(seen->least_term, 8U);
}

TEST_F(FileSiteStoreTest, ManyStartsLeaveASmallFile) {
  std::string bytes;
  for (std::uint64_t number = 1; number <= 2000; ++number) bytes += term_line(number);
  disk_.put(kTermPath, bytes);
  ASSERT_EQ(claim(*store(), 1), "done");
  EXPECT_EQ(disk_.bytes_of(kTermPath), term_line(2001));
}

TEST_F(FileSiteStoreTest, AFullDiskRefusesAndNothingIsLost) {
  disk_.put(kTermPath, term_line(7));
  const auto full = store();
  ASSERT_EQ(claim(*full, 1), "done");
  ASSERT_EQ(load(*full), Records());
  ASSERT_EQ(answer(full->append("one")), "done");
  disk_.fail_all_from(disk_.calls() + 1, ENOSPC);
  const auto refused_as_full = AllOf(HasSubstr("refused: "), HasSubstr("No space left"));
  EXPECT_THAT(claim(*full, 2), refused_as_full);
  EXPECT_THAT(answer(full->append("two")), refused_as_full);
  EXPECT_THAT(answer(full->replace("two")), refused_as_full);
  EXPECT_THAT(answer(full->resign()), refused_as_full);
  EXPECT_EQ(answer(full->confirm()), "done");
  disk_.stop_failing();
  EXPECT_EQ(answer(full->append("three")), "done");
  EXPECT_EQ(answer(full->resign()), "done");
  const auto next = store();
  EXPECT_EQ(next->look()->leader->term, 8U);
  EXPECT_TRUE(next->look()->leader->has_resigned);
  ASSERT_EQ(claim(*next, 2), "done");
  EXPECT_EQ(load(*next), (Records{"one", "three"}));
}

TEST_F(FileSiteStoreTest, AnFsyncThatFailsRefusesOneRecord) {
  const auto store_ = store();
  ASSERT_EQ(claim(*store_, 1), "done");
  ASSERT_EQ(load(*store_), Records());
  ASSERT_EQ(answer(store_->append("one")), "done");
  disk_.fail_call(disk_.calls() + 2, {.error = EIO});
  EXPECT_THAT(answer(store_->append("two")), HasSubstr("refused: "));
  EXPECT_EQ(answer(store_->append("three")), "done");
  EXPECT_EQ(disk_.bytes_of(kJournalPath), journal_line("one") + journal_line("three"));
}

TEST_F(FileSiteStoreTest, ADamagedJournalOfRulesIsNamed) {
  disk_.put(kJournalPath, "rubbish\n" + journal_line("two"));
  const auto damaged = store();
  ASSERT_EQ(claim(*damaged, 1), "done");
  EXPECT_THAT(load(*damaged)[0], HasSubstr("damaged: " + kJournalPath + ":1: the line is damaged"));
  disk_.put(kJournalPath, journal_line("two"));
  EXPECT_EQ(load(*damaged), Records{"two"});
}

TEST_F(FileSiteStoreTest, AFileThatWasRemovedTakesRecordsAgainAfterReplace) {
  const auto removed = store();
  ASSERT_EQ(claim(*removed, 1), "done");
  ASSERT_EQ(load(*removed), Records());
  ASSERT_EQ(answer(removed->append("one")), "done");
  ASSERT_EQ(disk_.unlink(kJournalPath.c_str()), 0);
  EXPECT_THAT(answer(removed->append("two")),
              HasSubstr("refused: " + kJournalPath + ": the file was moved or removed"));
  ASSERT_EQ(answer(removed->replace("both")), "done");
  ASSERT_EQ(answer(removed->append("three")), "done");
  EXPECT_EQ(disk_.bytes_of(kJournalPath), journal_line("both") + journal_line("three"));
}

TEST(RealFileSiteStore, TwoCannotShareOne) {
  const test::TemporaryDirectory scratch;
  const std::string path = scratch.path() / "rules.journal";
  FileCalls calls;
  const auto first = FileSiteStore::open(path, calls);
  ASSERT_TRUE(first);
  const auto busy = [&] {
    const auto second = FileSiteStore::open(path, calls);
    return !second && second.error().code == std::errc::device_or_resource_busy &&
           second.error().message.contains("belongs to another process: each needs its own");
  };
  EXPECT_TRUE(busy());
  for (int time = 0; time < 2; ++time) {
    ASSERT_EQ(claim(**first, 1), "done");
    ASSERT_EQ(load(**first), Records());
    EXPECT_TRUE(busy()) << "after it was read again, too";
  }
}

TEST(RealFileSiteStore, ADirectoryThatIsNotThereIsNamed) {
  FileCalls calls;
  const auto store = FileSiteStore::open("/does/not/exist/rules.journal", calls);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("/does/not/exist/rules.journal.term"));
}

}  // namespace
}  // namespace vpfs::control
