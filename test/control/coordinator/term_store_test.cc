#include "control/coordinator/term_store.h"

#include <chrono>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/store/file_calls.h"
#include "control/store/journal.h"
#include "control/store/journal_lines.h"
#include "test/control/store/memory_disk.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* kPath = "/d/j.term";

Term term(std::uint64_t number) {
  return {.number = number, .lease = 1s, .transit = 500ms};
}
std::string line(std::uint64_t number) {
  return control::journal_line(to_record(term(number)));
}

// A term store on a disk whose bytes the test chooses.
class TermStoreTest : public ::testing::Test {
 protected:
  [[nodiscard]] TermStore store() {
    auto journal = control::Journal::open(kPath, disk_);
    EXPECT_TRUE(journal);
    return TermStore(std::move(*journal));
  }
  [[nodiscard]] TermStore store_of(const std::string& bytes) {
    disk_.put(kPath, bytes);
    return store();
  }
  [[nodiscard]] std::string problem_of(const std::string& bytes) {
    const auto loaded = store_of(bytes).load();
    return loaded ? "none" : loaded.error().message;
  }

  control::MemoryDisk disk_;
};

TEST_F(TermStoreTest, WithoutAFileTheFirstTermIsOne) {
  TermStore terms = store();
  const auto last = terms.load();
  ASSERT_TRUE(last);
  EXPECT_FALSE(*last);
  EXPECT_EQ(terms.next(), 1U);
}

TEST_F(TermStoreTest, ATermIsThereAfterAPowerCutAtAnyCallOrItWasNeverBegun) {
  for (const bool keeps : {false, true}) {
    for (std::size_t call = 1; call < 100; ++call) {
      disk_ = {};
      disk_.put(kPath, line(6) + line(7));
      disk_.cut_power_at(disk_.calls() + call, 20);
      bool begun = false;
      try {
        TermStore terms = store();
        ASSERT_TRUE(terms.load());
        ASSERT_TRUE(terms.begin(term(terms.next())));
        begun = true;
      } catch (const control::PowerCut&) {
      }
      disk_.restart(keeps, keeps);
      TermStore terms = store();
      const auto last = terms.load();
      ASSERT_TRUE(last) << last.error().message;
      ASSERT_TRUE(*last);
      EXPECT_GE((*last)->number, begun ? 8U : 7U);
      EXPECT_GT(terms.next(), (*last)->number);
      if (begun) {
        EXPECT_EQ(**last, term(8));
        break;
      }
    }
  }
}

TEST_F(TermStoreTest, ALastLineThatIsCutAnywhereCountsAsUsed) {
  const std::string sound = line(5) + line(6);
  for (std::size_t size = 1; size < line(7).size(); ++size) {
    TermStore terms = store_of(sound + line(7).substr(0, size));
    const auto last = terms.load();
    ASSERT_TRUE(last) << last.error().message;
    EXPECT_EQ((*last)->number, 6U) << size;
    EXPECT_EQ(terms.next(), 8U) << size;
    ASSERT_TRUE(terms.begin(term(8)));
    EXPECT_EQ((*store().load())->number, 8U);
  }
  TermStore alone = store_of(line(1).substr(0, 30));
  EXPECT_FALSE(alone.load()) << "a file that was there and has no whole line is damaged";
}

TEST_F(TermStoreTest, AnyChangedByteOfALineBeforeIsRefusedWithItsPlace) {
  const std::string sound = line(5) + line(6) + line(7);
  const std::size_t begin = line(5).size();
  for (std::size_t at = begin; at + 1 < begin + line(6).size(); ++at) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    // The letters of a checksum are the same in upper and lower case.
    EXPECT_THAT(problem_of(bytes),
                ::testing::AllOf(HasSubstr("/d/j.term:2: "), HasSubstr("--term")))
        << at;
  }
}

TEST_F(TermStoreTest, TermsOnlyGrow) {
  EXPECT_THAT(problem_of(line(5) + line(7) + line(6)),
              HasSubstr("/d/j.term:3: the term 6 follows 7"));
  EXPECT_THAT(problem_of(line(5) + line(5)), HasSubstr("/d/j.term:2: the term 5 follows 5"));
}

TEST_F(TermStoreTest, ARecordThatIsNotATermIsNamed) {
  const auto problem = [&](const std::string& record) {
    return problem_of(line(1) + control::journal_line(record));
  };
  EXPECT_THAT(problem("7"), HasSubstr("/d/j.term:2: it is not a JSON object"));
  EXPECT_THAT(problem("{}"), HasSubstr("it has no number `v`"));
  EXPECT_THAT(problem(R"({"v":2})"), HasSubstr("it has the format 2, which this version"));
  EXPECT_THAT(problem(R"({"v":1})"), HasSubstr("it has no number `term`"));
  EXPECT_THAT(problem(R"({"v":1,"term":-1})"), HasSubstr("it has no number `term`"));
  EXPECT_THAT(problem(R"({"v":1,"term":2.5})"), HasSubstr("it has no number `term`"));
  EXPECT_THAT(problem(R"({"v":1,"term":2})"), HasSubstr("it has no number `lease_us`"));
  EXPECT_THAT(problem(R"({"v":1,"term":2,"lease_us":1})"), HasSubstr("no number `transit_us`"));
  EXPECT_THAT(problem(R"({"v":1,"term":0,"lease_us":1,"transit_us":1})"), HasSubstr("term is 0"));
  EXPECT_THAT(problem(R"({"v":1,"term":18446744073709551615,"lease_us":1,"transit_us":1})"),
              HasSubstr("is too large"));
  EXPECT_THAT(problem(R"({"v":1,"term":2,"lease_us":9223372036854775807,"transit_us":1})"),
              HasSubstr("longer than a year"));
  // A journal of live rules.
  EXPECT_THAT(problem(R"({"v":2,"n":17,"op":"start"})"), HasSubstr("/d/j.term:2: it has the form"));
}

TEST_F(TermStoreTest, ManyStartsLeaveASmallFile) {
  std::string bytes;
  for (std::uint64_t number = 1; number <= 2000; ++number) bytes += line(number);
  TermStore terms = store_of(bytes);
  ASSERT_TRUE(terms.load());
  ASSERT_TRUE(terms.begin(term(terms.next())));
  EXPECT_EQ(disk_.bytes_of(kPath), line(2001));
}

TEST_F(TermStoreTest, AFullDiskIsAnErrorAndNoTermIsLost) {
  disk_.put(kPath, line(7));
  TermStore terms = store();
  ASSERT_TRUE(terms.load());
  disk_.fail_all_from(disk_.calls() + 1, ENOSPC);
  const auto begun = terms.begin(term(8));
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().message, HasSubstr("No space left"));
  disk_.stop_failing();
  TermStore again = store();
  ASSERT_TRUE(again.load());
  EXPECT_GE(again.next(), 8U);
}

}  // namespace
}  // namespace vpfs::coordinator
