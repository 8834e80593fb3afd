#include "control/store/journal.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/store/journal_lines.h"
#include "test/control/store/memory_disk.h"
#include "test/support/odd_files.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using testing::HasSubstr;
using Records = std::vector<std::string>;

std::unique_ptr<Journal> opened(FileCalls& disk, const std::string& path = kJournalPath) {
  Result<std::unique_ptr<Journal>> journal = Journal::open(path, disk);
  return journal ? std::move(*journal) : nullptr;
}

// The records, after another start.
Records stored(FileCalls& disk, const std::string& path = kJournalPath) {
  const std::unique_ptr<Journal> journal = opened(disk, path);
  if (!journal) return {"not open"};
  const auto loaded = journal->load();
  if (!loaded) return {loaded.error().message};
  Records records;
  for (const StateStore::Record& record : loaded->records) records.push_back(record.text);
  return records;
}

TEST(Journal, RecordsAreThereAfterAnotherStart) {
  MemoryDisk disk;
  {
    const auto journal = opened(disk);
    ASSERT_TRUE(journal->load()->records.empty());
    ASSERT_TRUE(journal->append("one"));
    ASSERT_TRUE(journal->append("two"));
  }
  const auto journal = opened(disk);
  const auto loaded = journal->load();
  ASSERT_EQ(loaded->records.size(), 2U);
  EXPECT_EQ(loaded->records[1].text, "two");
  EXPECT_EQ(loaded->records[1].place, kJournalPath + ":2");
  EXPECT_TRUE(loaded->notes.empty());
}

TEST(Journal, OneRecordTakesThePlaceOfAll) {
  MemoryDisk disk;
  {
    const auto journal = opened(disk);
    ASSERT_TRUE(journal->load());
    ASSERT_TRUE(journal->append("one"));
    ASSERT_TRUE(journal->append("two"));
    ASSERT_TRUE(journal->replace("both"));
    ASSERT_TRUE(journal->append("three"));
  }
  EXPECT_EQ(stored(disk), (Records{"both", "three"}));
}

TEST(Journal, ALastHalfLineIsSaidAndCutBeforeTheNextRecord) {
  MemoryDisk disk;
  const std::string one = journal_line("one");
  disk.put(kJournalPath, one + "1234567");
  const auto journal = opened(disk);
  const auto loaded = journal->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->records.size(), 1U);
  ASSERT_EQ(loaded->notes.size(), 1U);
  EXPECT_THAT(loaded->notes[0],
              HasSubstr(kJournalPath + ":2: the last line, 7 bytes, was not written"));
  EXPECT_EQ(disk.bytes_of(kJournalPath), one + "1234567") << "reading changes nothing";
  ASSERT_TRUE(journal->append("two"));
  EXPECT_EQ(disk.bytes_of(kJournalPath), one + journal_line("two"));
}

TEST(Journal, ADamagedLineBeforeOthersIsRefusedWithItsPlaceAndNothingIsChanged) {
  MemoryDisk disk;
  const std::string bytes = journal_line("one") + "rubbish\n" + journal_line("three");
  disk.put(kJournalPath, bytes);
  const auto journal = opened(disk);
  const auto loaded = journal->load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr(kJournalPath + ":2: the line is damaged"));
  EXPECT_THAT(loaded.error().message, HasSubstr("Restore the file from a backup"));
  EXPECT_EQ(disk.bytes_of(kJournalPath), bytes);
}

// What a program does between two starts, as far as it is told that something is stored. A record
// "all:N" has the sense of the records 1 to N.
struct RecordWriter {
  int done = 0;   // records 1 ... done are stored
  int asked = 0;  // and it was asked for this many

  void go(FileCalls& disk) {
    const auto journal = opened(disk);
    if (!journal || !journal->load()) return;
    for (int record = 1; record <= 8; ++record) {
      // What was refused is not tried again: the next record follows the last one stored.
      asked = done + 1;
      if (journal->append(std::to_string(asked))) done = asked;
      if (record == 4) (void)journal->replace("all:" + std::to_string(done));
    }
  }
};

// How many records there are: 1 ... N in order. -1: something else.
int count_of(const Records& records) {
  int count = 0;
  for (const std::string& record : records) {
    if (record.starts_with("all:") && count == 0) {
      count = std::atoi(record.c_str() + 4);
    } else if (record == std::to_string(count + 1)) {
      ++count;
    } else {
      return -1;
    }
  }
  return count;
}

TEST(Journal, APowerCutAtAnyByteLosesNothingThatWasStored) {
  RecordWriter whole;
  MemoryDisk measured;
  whole.go(measured);
  ASSERT_EQ(whole.done, 8);
  int cuts = 0;
  for (std::size_t call = 1; call <= measured.calls(); ++call) {
    std::size_t write_size = 0;
    for (std::size_t bytes = 0; bytes <= write_size; ++bytes) {
      for (const int kept : {0, 1, 2, 3}) {
        MemoryDisk disk;
        disk.cut_power_at(call, bytes);
        RecordWriter run;
        try {
          run.go(disk);
        } catch (const PowerCut&) {
          ++cuts;
        }
        write_size = disk.last_write_size();
        disk.restart((kept & 1) != 0, (kept & 2) != 0);
        const Records records = stored(disk);
        const int count = count_of(records);
        ASSERT_GE(count, run.done) << call << ", " << bytes << " bytes, kept " << kept << ": "
                                   << testing::PrintToString(records);
        ASSERT_LE(count, run.asked) << call << ", " << bytes << " bytes, kept " << kept;
      }
    }
  }
  EXPECT_GT(cuts, 1000);
}

TEST(Journal, AnyCallThatFailsRefusesOneRecordAndLosesNone) {
  MemoryDisk measured;
  RecordWriter whole;
  whole.go(measured);
  for (std::size_t call = 1; call <= measured.calls(); ++call) {
    for (const int error : {ENOSPC, EIO, EROFS}) {
      for (const std::size_t bytes : {0U, 5U}) {
        MemoryDisk disk;
        disk.fail_call(call, {.error = error, .bytes = bytes});
        RecordWriter run;
        run.go(disk);
        EXPECT_EQ(count_of(stored(disk)), run.done) << call << ", " << error << ", " << bytes;
        if (run.asked > 0) {
          EXPECT_GE(run.done, 7) << call << ", " << error << ", " << bytes;
        }
      }
    }
  }
}

TEST(Journal, ADiskThatStaysFullRefusesEveryRecordUntilThereIsRoom) {
  MemoryDisk measured;
  RecordWriter whole;
  whole.go(measured);
  for (std::size_t call = 1; call <= measured.calls(); ++call) {
    MemoryDisk disk;
    const auto journal = opened(disk);
    ASSERT_TRUE(journal->load());
    disk.fail_all_from(disk.calls() + call, ENOSPC);
    int done = 0;
    for (int record = 0; record < 8; ++record) {
      const auto appended = journal->append(std::to_string(done + 1));
      if (appended) {
        ++done;
      } else {
        EXPECT_THAT(appended.error().message, HasSubstr("No space left on device"));
        EXPECT_EQ(appended.error().code, std::errc::no_space_on_device);
      }
      if (record == 4) (void)journal->replace("all:" + std::to_string(done));
    }
    disk.stop_failing();
    ASSERT_TRUE(journal->append(std::to_string(done + 1))) << call;
    EXPECT_EQ(count_of(stored(disk)), done + 1) << call;
  }
}

TEST(Journal, ItWantsToBeReplacedWhenItHasGrownManyTimesOver) {
  MemoryDisk disk;
  const auto journal = opened(disk);
  ASSERT_TRUE(journal->load());
  const std::string record(1000, 'x');
  int appended = 0;
  for (; !journal->wants_replacing(); ++appended) ASSERT_TRUE(journal->append(record));
  EXPECT_EQ(appended, 65) << "a little more than 64 KiB";
  ASSERT_TRUE(journal->replace(std::string(100'000, 'y')));
  for (appended = 0; !journal->wants_replacing(); ++appended) ASSERT_TRUE(journal->append(record));
  EXPECT_EQ(appended, 298) << "a little more than four times the record";
  const auto again = opened(disk);
  ASSERT_TRUE(again->load());
  EXPECT_TRUE(again->wants_replacing());
}

class RealFiles : public testing::Test {
 protected:
  RealFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "vpfs_journal.XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ / "rules.journal";
  }
  ~RealFiles() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  std::string path_;
  FileCalls calls_;
};

TEST_F(RealFiles, RecordsAreThereAfterAnotherStart) {
  {
    const auto journal = opened(calls_, path_);
    ASSERT_TRUE(journal->load());
    ASSERT_TRUE(journal->append("one"));
    ASSERT_TRUE(journal->replace("all of one"));
    ASSERT_TRUE(journal->append("two"));
  }
  EXPECT_EQ(stored(calls_, path_), (Records{"all of one", "two"}));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(RealFiles, AFileThatWasRemovedOrReplacedIsNotInItsPlace) {
  const auto journal = opened(calls_, path_);
  ASSERT_TRUE(journal->load());
  ASSERT_TRUE(journal->append("one"));
  EXPECT_TRUE(journal->is_in_place());
  std::filesystem::remove(path_);
  EXPECT_FALSE(journal->is_in_place());
  ASSERT_TRUE(journal->replace("all of one"));
  EXPECT_TRUE(journal->is_in_place());
  ASSERT_TRUE(journal->append("two"));
  std::filesystem::rename(path_, path_ + ".moved");
  std::ofstream(path_) << "another file";
  EXPECT_FALSE(journal->is_in_place());
  ASSERT_TRUE(journal->replace("all of two"));
  EXPECT_TRUE(journal->is_in_place());
}

TEST_F(RealFiles, TwoCannotShareOne) {
  const auto first = opened(calls_, path_);
  ASSERT_TRUE(first->load());
  ASSERT_TRUE(first->replace("a new file does not free it"));
  const auto second = Journal::open(path_, calls_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("belongs to another process"));
  EXPECT_EQ(second.error().code, std::errc::device_or_resource_busy);
}

TEST_F(RealFiles, ADirectoryThatIsNotThereIsNamed) {
  const auto journal = Journal::open((directory_ / "none" / "rules.journal").string(), calls_);
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message, HasSubstr("No such file or directory"));
}

TEST_F(RealFiles, WhatIsNotARegularFileIsNamedAndDoesNotWait) {
  for (const test::OddFile kind : test::kOddFiles) {
    put_odd_file(kind, path_);
    const auto journal = Journal::open(path_, calls_);
    ASSERT_FALSE(journal);
    EXPECT_THAT(journal.error().message, HasSubstr(path_ + ": "));
    EXPECT_THAT(journal.error().message, HasSubstr(std::string(name_of(kind))));
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".lock");

    put_odd_file(kind, path_ + ".lock");
    const auto locked = Journal::open(path_, calls_);
    ASSERT_FALSE(locked);
    EXPECT_THAT(locked.error().message, HasSubstr("its lock " + path_ + ".lock"));
    EXPECT_THAT(locked.error().message, HasSubstr(std::string(name_of(kind))));
    std::filesystem::remove(path_ + ".lock");

    {
      const auto good = opened(calls_, path_);
      ASSERT_TRUE(good->load());
      ASSERT_TRUE(good->append("one"));
      put_odd_file(kind, path_ + ".new");
      const auto replaced = good->replace("all of one");
      ASSERT_FALSE(replaced);
      EXPECT_THAT(replaced.error().message, HasSubstr("its successor " + path_ + ".new"));
      EXPECT_THAT(replaced.error().message, HasSubstr(std::string(name_of(kind))));
      ASSERT_TRUE(good->append("two"));
    }
    EXPECT_EQ(stored(calls_, path_), (Records{"one", "two"}));
    std::filesystem::remove(path_ + ".new");
    std::filesystem::remove(path_);
  }
}

TEST_F(RealFiles, OneThatMayNotBeOpenedSaysSo) {
  std::ofstream(path_) << journal_line("one");
  std::filesystem::permissions(path_, std::filesystem::perms::none);
  std::filesystem::permissions(directory_, std::filesystem::perms(0777));
  const test::AsNobody nobody;
  const auto journal = Journal::open(path_, calls_);
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message, HasSubstr(path_ + ": cannot be opened for writing: Perm"));
}

TEST_F(RealFiles, OneWithoutAWholeLineIsDamagedAndNotEmpty) {
  const std::vector<std::string> all_bytes = {
      std::string(4096, '\0'),          "\n",       std::string(3, '\0') + "\n",
      journal_line("one").substr(0, 5), "rules:\n", "deadbeef another checksum\n"};
  for (const std::string& bytes : all_bytes) {
    std::ofstream(path_, std::ios::trunc | std::ios::binary) << bytes;
    const auto journal = opened(calls_, path_);
    const auto loaded = journal->load();
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message,
                HasSubstr(path_ + ": has " + std::to_string(bytes.size()) + " bytes, but no line"));
    EXPECT_EQ(std::filesystem::file_size(path_), bytes.size()) << "nothing is changed";
  }
}

TEST_F(RealFiles, TheFirstRecordNeedsNoPlaceForASecondFile) {
  const auto journal = opened(calls_, path_);
  ASSERT_TRUE(journal->load());
  std::filesystem::create_directory(path_ + ".new");
  ASSERT_TRUE(journal->append("one"));
  EXPECT_EQ(test::read_text(path_), journal_line("one"));
}

TEST_F(RealFiles, AFileCutAtEveryByteIsReadUpToThere) {
  std::string bytes;
  for (int record = 1; record <= 5; ++record) bytes += journal_line(std::to_string(record * 111));
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    std::ofstream(path_, std::ios::trunc | std::ios::binary) << bytes.substr(0, size);
    const Records records = stored(calls_, path_);
    if (size > 0 && size < bytes.size() / 5) {
      ASSERT_EQ(records.size(), 1U);
      EXPECT_THAT(records[0], HasSubstr("no line of a journal")) << size;
      continue;
    }
    EXPECT_EQ(records.size(), size / (bytes.size() / 5)) << size;
    {
      const auto journal = opened(calls_, path_);
      ASSERT_TRUE(journal->load());
      ASSERT_TRUE(journal->append("next"));
    }
    EXPECT_EQ(stored(calls_, path_).size(), records.size() + 1) << size;
  }
}

}  // namespace
}  // namespace vpfs::control
