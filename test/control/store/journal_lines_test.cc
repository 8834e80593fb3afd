#include "control/store/journal_lines.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

std::vector<std::string> records_of(const std::string& bytes) {
  const auto read = read_journal_lines(bytes);
  if (!read) return {"damaged: " + std::to_string(read.error().number)};
  std::vector<std::string> records;
  for (const auto& line : read->lines) records.emplace_back(line.record);
  return records;
}

using Records = std::vector<std::string>;

TEST(JournalLines, ALineIsItsRecordAfterTheChecksum) {
  // The CRC-32 of "123456789" is a known value.
  EXPECT_EQ(journal_line("123456789"), "cbf43926 123456789\n");
}

TEST(JournalLines, WhatWasWrittenIsRead) {
  EXPECT_EQ(records_of(""), Records{});
  EXPECT_EQ(records_of(journal_line("{\"a\":1}") + journal_line("") + journal_line("b c")),
            (Records{"{\"a\":1}", "", "b c"}));
}

TEST(JournalLines, ALastLineThatIsNotWholeDoesNotCountWhereverItEnds) {
  const std::string before = journal_line("one") + journal_line("two");
  const std::string last = journal_line("{\"op\":\"rule_stop\"}");
  for (std::size_t size = 0; size < last.size(); ++size) {
    const std::string bytes = before + last.substr(0, size);
    const auto read = read_journal_lines(bytes);
    ASSERT_TRUE(read) << size;
    EXPECT_EQ(read->lines.size(), 2U) << size;
    EXPECT_EQ(read->sound_bytes, before.size()) << size;
  }
}

TEST(JournalLines, ALastLineWhoseBeginningWasNotWrittenDoesNotCount) {
  const std::string before = journal_line("one");
  std::string last = journal_line("{\"op\":\"rule_stop\",\"name\":\"backup\"}");
  last.replace(0, 20, 20, '\0');
  EXPECT_EQ(records_of(before + last), Records{"one"});
}

TEST(JournalLines, AWholeRecordOfAnotherLineIsFoundByItsChecksum) {
  // The bytes are JSON, but not those that the line had.
  std::string torn = journal_line(R"({"op":"rule_stop","name":"ab"})");
  torn.replace(torn.find("ab"), 2, "cd");
  EXPECT_EQ(records_of(torn + journal_line("next")), Records{"damaged: 1"});
}

TEST(JournalLines, EveryChangedByteBeforeTheLastLineIsFound) {
  const std::string sound = journal_line("first record") + journal_line("second record");
  const std::string bytes = sound + journal_line("third");
  // Without its own newline the second line would be a part of the last one.
  for (std::size_t at = 0; at + 1 < sound.size(); ++at) {
    for (const char bit : {'\x01', '\x10', '\x40'}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      // Hexadecimal digits are the same in upper case.
      if (records_of(damaged) == records_of(bytes)) {
        EXPECT_EQ(std::tolower(damaged[at]), bytes[at]) << at;
        continue;
      }
      EXPECT_TRUE(records_of(damaged).front().starts_with("damaged")) << at;
    }
  }
}

TEST(JournalLines, LinesOfTheFormatBeforeComeFirstAndHaveNoChecksum) {
  EXPECT_EQ(records_of("{\"v\":1}\n" + journal_line("new")), (Records{"{\"v\":1}", "new"}));
  EXPECT_EQ(records_of("{\"v\":1}\n{\"v\""), Records{"{\"v\":1}"});
  EXPECT_EQ(records_of(journal_line("new") + "{\"v\":1}\n" + journal_line("more")),
            Records{"damaged: 2"});
}

TEST(JournalLines, AFileThatIsNotAJournalIsDamagedInItsFirstLine) {
  EXPECT_EQ(records_of("proxy:\n  listen: 0.0.0.0:1\n"), Records{"damaged: 1"});
}

}  // namespace
}  // namespace vpfs::control
