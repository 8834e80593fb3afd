#include "control/store/directory_site_store.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "control/store/journal_lines.h"
#include "test/control/store/site_store_cases.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Calls of real files. `before` runs before each of them.
class WatchedCalls final : public FileCalls {
 public:
  std::function<void()> before = [] {};

  int open(const char* path, int flags, mode_t mode) override {
    before();
    return FileCalls::open(path, flags, mode);
  }
  ssize_t read(int file, void* to, std::size_t size) override {
    before();
    return FileCalls::read(file, to, size);
  }
  ssize_t write(int file, const void* from, std::size_t size) override {
    before();
    return FileCalls::write(file, from, size);
  }
  int fsync(int file) override {
    before();
    return FileCalls::fsync(file);
  }
  int rename(const char* from, const char* to) override {
    before();
    return FileCalls::rename(from, to);
  }
  int link(const char* from, const char* to) override {
    before();
    return FileCalls::link(from, to);
  }
  std::optional<std::vector<std::string>> names_in(const char* directory) override {
    before();
    if (kept_names_) return kept_names_;
    return FileCalls::names_in(directory);
  }

  // From now on the directory seems to have these names, as a cache may have them.
  void keep_names(const std::string& directory) {
    kept_names_ = FileCalls::names_in(directory.c_str());
  }
  void drop_names() { kept_names_.reset(); }

 private:
  std::optional<std::vector<std::string>> kept_names_;
};

class DirectoryRig final : public SiteStoreRig {
 public:
  std::unique_ptr<SiteStore> open() override { return open_with(calls_); }
  std::unique_ptr<DirectorySiteStore> open_with(FileCalls& calls) {
    auto store = DirectorySiteStore::open(path(), 10s, calls);
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }
  [[nodiscard]] std::string path() const { return scratch_.path(); }
  [[nodiscard]] std::string path(const std::string& kind, int number) const {
    const std::string digits = std::to_string(number);
    return path() + "/" + kind + "-" + std::string(20 - digits.size(), '0') + digits;
  }
  [[nodiscard]] bool has(const std::string& kind, int number) const {
    return std::filesystem::exists(path(kind, number));
  }
  void put(const std::string& kind, int number, const std::string& bytes) const {
    std::ofstream(path(kind, number), std::ios::trunc) << bytes;
  }
  [[nodiscard]] std::size_t count_of(const std::string& start) const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      if (entry.path().filename().string().starts_with(start)) ++count;
    }
    return count;
  }

 private:
  test::TemporaryDirectory scratch_;
  FileCalls calls_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Directory, SiteStoreCases, DirectoryRig);

class DirectorySiteStoreTest : public ::testing::Test {
 protected:
  // A coordinator leads, with these records.
  void lead(const Records& records) {
    leader_ = rig_.open();
    ASSERT_EQ(claim(*leader_, 1), "done");
    ASSERT_EQ(load(*leader_), Records());
    for (const std::string& record : records) ASSERT_EQ(answer(leader_->append(record)), "done");
  }

  DirectoryRig rig_;
  std::unique_ptr<SiteStore> leader_;
};

TEST_F(DirectorySiteStoreTest, ItsTraitsAreThoseOfADirectory) {
  const SiteStore::Traits traits = rig_.open()->traits();
  EXPECT_TRUE(traits.has_standbys);
  EXPECT_TRUE(traits.shows_beats);
  EXPECT_FALSE(traits.vacancy_is_certain);
  EXPECT_EQ(traits.lease, 10s);
}

TEST_F(DirectorySiteStoreTest, ADirectoryThatDoesNotFitIsNotOpened) {
  ASSERT_EQ(::chmod(rig_.path().c_str(), 0777), 0);
  FileCalls calls;
  const auto store = DirectorySiteStore::open(rig_.path(), 10s, calls);
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("other users may write to it"));
}

TEST_F(DirectorySiteStoreTest, FilesOfOldClaimsAndTheirDraftsAreRemoved) {
  rig_.put("draft", 2, "a claimant that was killed");
  rig_.put("notes", 1, "a file of an administrator");
  auto store = rig_.open();
  for (std::uint64_t leader = 1; leader <= 30; ++leader) {
    ASSERT_EQ(claim(*store, leader), "done");
    ASSERT_EQ(load(*store).size(), leader - 1);
    ASSERT_EQ(answer(store->append("record")), "done");
  }
  for (const char* kind : {"claim", "rules", "beat"}) {
    EXPECT_TRUE(rig_.has(kind, 30)) << kind;
    EXPECT_TRUE(rig_.has(kind, 22)) << kind;
    EXPECT_FALSE(rig_.has(kind, 21)) << kind;
    EXPECT_EQ(rig_.count_of(kind), 9U) << kind;
  }
  EXPECT_EQ(rig_.count_of("draft"), 0U);
  EXPECT_TRUE(rig_.has("notes", 1));
}

// A standby that was stopped for long claims a number whose file was removed meanwhile.
TEST_F(DirectorySiteStoreTest, AClaimOfANumberThatWasRemovedIsLostAndChangesNothing) {
  const auto late = rig_.open();
  ASSERT_EQ(claim(*late, 1), "done");
  const auto old = late->look();
  ASSERT_TRUE(old);
  auto store = rig_.open();
  for (std::uint64_t leader = 2; leader <= 20; ++leader) {
    ASSERT_EQ(claim(*store, leader), "done");
    ASSERT_EQ(load(*store).size(), leader - 2);
    ASSERT_EQ(answer(store->append("record")), "done");
  }
  ASSERT_FALSE(rig_.has("claim", 2));
  EXPECT_EQ(answer(late->claim(*old, leadership(1000, 77))), "lost");
  EXPECT_EQ(answer(late->confirm()), "lost");
  EXPECT_EQ(answer(store->confirm()), "done");
  EXPECT_EQ(late->look()->leader->incarnation, 20U);
  ASSERT_EQ(claim(*late, 78), "done");
  EXPECT_EQ(load(*late).size(), 19U);
}

TEST_F(DirectorySiteStoreTest, AnOldListOfTheDirectoryMakesAStandbyLateAndNoMore) {
  lead({"one"});
  WatchedCalls calls;
  const auto standby = rig_.open_with(calls);
  calls.keep_names(rig_.path());
  const auto second = rig_.open();
  ASSERT_EQ(claim(*second, 2), "done");
  ASSERT_EQ(load(*second), Records{"one"});
  ASSERT_EQ(answer(second->append("two")), "done");
  EXPECT_EQ(standby->look()->leader->incarnation, 1U);
  EXPECT_EQ(claim(*standby, 3), "lost");
  EXPECT_EQ(answer(second->confirm()), "done");
  calls.drop_names();
  EXPECT_EQ(standby->look()->leader->incarnation, 2U);
}

TEST_F(DirectorySiteStoreTest, AnOldListOfTheDirectoryHidesNoSuccessorAndNoRecords) {
  WatchedCalls old_calls;
  const auto old = rig_.open_with(old_calls);
  ASSERT_EQ(claim(*old, 1), "done");
  ASSERT_EQ(load(*old), Records());
  old_calls.keep_names(rig_.path());
  WatchedCalls fresh_calls;
  const auto fresh = rig_.open_with(fresh_calls);
  const auto seen = fresh->look();
  ASSERT_TRUE(seen);
  fresh_calls.keep_names(rig_.path());
  ASSERT_EQ(answer(old->append("one")), "done");
  ASSERT_EQ(answer(fresh->claim(*seen, leadership(2, 2))), "done");
  EXPECT_EQ(load(*fresh), Records{"one"});
  EXPECT_EQ(answer(old->append("two")), "lost");
  EXPECT_EQ(answer(old->confirm()), "lost");
}

// A successor takes the office before each of the calls of files that a leader makes.
TEST_F(DirectorySiteStoreTest, AnAppendThatASuccessorInterruptsAnywhereIsReadOrLost) {
  int done = 0;
  int read_and_lost = 0;
  constexpr int kMost = 100;
  int at = 1;
  for (bool was_interrupted = true; was_interrupted && at < kMost; ++at) {
    DirectoryRig rig;
    WatchedCalls calls;
    const auto old = rig.open_with(calls);
    ASSERT_EQ(claim(*old, 1), "done");
    ASSERT_EQ(load(*old), Records());
    ASSERT_EQ(answer(old->append("one")), "done");
    const auto fresh = rig.open();
    Records loaded;
    int count = 0;
    const auto take_over = [&] {
      ASSERT_EQ(claim(*fresh, 2), "done");
      loaded = load(*fresh);
      ASSERT_EQ(answer(fresh->append("fresh")), "done");
    };
    calls.before = [&] {
      if (++count == at) take_over();
    };
    const std::string answered = answer(old->append("two"));
    was_interrupted = count >= at;
    if (!was_interrupted) {
      take_over();
      EXPECT_EQ(answered, "done");
    }
    if (answered == "done") {
      EXPECT_EQ(loaded, (Records{"one", "two"})) << "call " << at;
      ++done;
    } else {
      EXPECT_EQ(answered, "lost");
      ASSERT_FALSE(loaded.empty());
      EXPECT_EQ(loaded[0], "one");
      if (loaded.size() == 2) ++read_and_lost;
    }
    EXPECT_EQ(answer(old->append("three")), "lost");
    loaded.emplace_back("fresh");
    const auto third = rig.open();
    ASSERT_EQ(claim(*third, 3), "done");
    EXPECT_EQ(load(*third), loaded) << "call " << at;
  }
  EXPECT_GT(at, 8);
  EXPECT_LT(at, kMost);
  EXPECT_EQ(done, 1) << "and that one only because nothing interrupted it";
  EXPECT_GT(read_and_lost, 0);
}

// The other way round: a leader appends before each of the calls that its successor makes.
TEST_F(DirectorySiteStoreTest, ASuccessorReadsEachAppendThatSucceedsDuringItsClaim) {
  int done = 0;
  int lost = 0;
  constexpr int kMost = 200;
  int at = 1;
  for (bool was_interrupted = true; was_interrupted && at < kMost; ++at) {
    DirectoryRig rig;
    const auto old = rig.open();
    ASSERT_EQ(claim(*old, 1), "done");
    ASSERT_EQ(load(*old), Records());
    ASSERT_EQ(answer(old->append("one")), "done");
    WatchedCalls calls;
    const auto fresh = rig.open_with(calls);
    std::string answered;
    int count = 0;
    calls.before = [&] {
      if (++count != at) return;
      answered = at % 2 == 0 ? answer(old->replace("one and two")) : answer(old->append("two"));
    };
    ASSERT_EQ(claim(*fresh, 2), "done");
    const Records loaded = load(*fresh);
    was_interrupted = count >= at;
    if (answered == "done") {
      EXPECT_EQ(loaded, at % 2 == 0 ? Records{"one and two"} : (Records{"one", "two"}));
      ++done;
    } else {
      EXPECT_EQ(answered, was_interrupted ? "lost" : "");
      EXPECT_EQ(loaded, Records{"one"}) << "call " << at;
      ++lost;
    }
  }
  EXPECT_LT(at, kMost);
  EXPECT_GT(done, 5);
  EXPECT_GT(lost, 5);
}

TEST_F(DirectorySiteStoreTest, AMarkThatWasNotWrittenToItsEndIsCompleted) {
  lead({});
  std::ofstream(rig_.path("claim", 1), std::ios::app) << "resi";
  EXPECT_EQ(answer(leader_->confirm()), "lost");
  EXPECT_FALSE(leader_->look()->is_vacant);
  EXPECT_EQ(answer(leader_->resign()), "done");
  EXPECT_EQ(answer(leader_->resign()), "done") << "again, after an answer that came too late";
  EXPECT_TRUE(leader_->look()->is_vacant);
}

TEST_F(DirectorySiteStoreTest, DamagedFilesAreNamed) {
  lead({"one", "two"});
  const auto next = rig_.open();
  rig_.put("claim", 1, "");
  EXPECT_THAT(claim(*next, 2),
              HasSubstr("damaged: " + rig_.path("claim", 1) + ": the file is dam"));
  rig_.put("claim", 1, "{}\n");
  EXPECT_THAT(claim(*next, 2),
              HasSubstr("damaged: " + rig_.path("claim", 1) + ": it has no number"));
  rig_.put("claim", 1, to_record(leadership(1, 1)) + "\n");
  ASSERT_EQ(claim(*next, 2), "done");
  const std::string rules = test::read_text(rig_.path("rules", 1));
  rig_.put("rules", 1, "rubbish\n" + rules);
  EXPECT_THAT(load(*next)[0],
              HasSubstr("damaged: " + rig_.path("rules", 1) + ":1: the line is dam"));
  rig_.put("rules", 1, "rubbish");
  EXPECT_THAT(load(*next)[0],
              HasSubstr("damaged: " + rig_.path("rules", 1) + ": has 7 bytes, but"));
  EXPECT_FALSE(rig_.has("rules", 2)) << "nothing was changed";
  rig_.put("rules", 1, rules + "12345678 half");
  const auto loaded = next->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->records.size(), 2U);
  ASSERT_EQ(loaded->notes.size(), 1U);
  EXPECT_THAT(loaded->notes[0],
              HasSubstr(":3: the last line, 13 bytes, was not written to its end"));
}

TEST_F(DirectorySiteStoreTest, RecordsWithoutAClaimAreNotStartedOver) {
  lead({"one"});
  std::filesystem::remove(rig_.path("claim", 1));
  const auto next = rig_.open();
  EXPECT_THAT(claim(*next, 2), AllOf(HasSubstr("damaged: " + rig_.path("claim", 1)),
                                     HasSubstr("move all files of the directory away")));
  EXPECT_THAT(answer(leader_->confirm()), HasSubstr("unreachable: " + rig_.path("claim", 1)));
  std::filesystem::remove(rig_.path("rules", 1));
  EXPECT_EQ(claim(*next, 2), "done") << "the administrator wants it";
  EXPECT_EQ(answer(leader_->confirm()), "lost");
}

TEST_F(DirectorySiteStoreTest, AnEmptyDirectoryInPlaceOfTheMountedOneIsNotANewSite) {
  lead({"one"});
  const auto standby = rig_.open();
  ASSERT_TRUE(standby->look());
  const std::string moved = rig_.path() + ".moved";
  for (const bool has_directory : {false, true}) {
    std::filesystem::rename(rig_.path(), moved);
    if (has_directory) std::filesystem::create_directory(rig_.path());
    EXPECT_THAT(claim(*standby, 2), HasSubstr("unreachable: " + rig_.path()));
    EXPECT_THAT(answer(leader_->confirm()), HasSubstr("unreachable: " + rig_.path()));
    EXPECT_THAT(answer(leader_->append("two")), HasSubstr("unreachable: " + rig_.path()));
    std::filesystem::remove_all(rig_.path());
    std::filesystem::rename(moved, rig_.path());
  }
  EXPECT_EQ(answer(leader_->append("two")), "done");
  EXPECT_EQ(claim(*standby, 2), "done");
  EXPECT_EQ(load(*standby), (Records{"one", "two"}));
}

TEST_F(DirectorySiteStoreTest, AFileOfRecordsThatWasChangedTakesThemAgainAfterReplace) {
  lead({"one"});
  std::filesystem::remove(rig_.path("rules", 1));
  EXPECT_THAT(answer(leader_->append("two")),
              AllOf(HasSubstr("refused: " + rig_.path("rules", 1)), HasSubstr("moved or removed")));
  ASSERT_EQ(answer(leader_->replace("both")), "done");
  ASSERT_EQ(answer(leader_->append("three")), "done");
  rig_.put("rules", 1, "");
  EXPECT_THAT(answer(leader_->append("four")), HasSubstr("another program has changed it"));
  ASSERT_EQ(answer(leader_->replace("all")), "done");
  const auto next = rig_.open();
  ASSERT_EQ(claim(*next, 2), "done");
  EXPECT_EQ(load(*next), Records{"all"});
}

TEST_F(DirectorySiteStoreTest, OtherFilesOfTheDirectoryAreLeftAlone) {
  for (const char* name :
       {"claim-7", "claim-0000000000000000000x", "claim-00000000000000000007.bak",
        "claim-99999999999999999999", "rules-00000000000000000000", "notes"}) {
    std::ofstream(rig_.path() + "/" + name) << "x";
  }
  lead({"one"});
  EXPECT_TRUE(rig_.has("claim", 1));
  EXPECT_EQ(rig_.count_of(""), 9U);
}

}  // namespace
}  // namespace vpfs::control
