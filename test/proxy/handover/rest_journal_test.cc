#include "proxy/handover/rest_journal.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vpfs::proxy {
namespace {

constexpr off_t kRecords = 4096;
constexpr off_t kRecordSize = 512;

RestRecord rest_record(std::uint64_t number) {
  RestRecord record = {.client = {.cookie = number, .taken = number + 1, .given = number + 2},
                       .server = {.cookie = number + 3, .taken = number + 4, .given = number + 5},
                       .state = {}};
  record.state.set("number", number);
  return record;
}

// The memory of a journal whose process has ended: `fill` runs in another one.
template <typename Fill>
net::Descriptor journal_of_the_dead(std::size_t places, Fill fill) {
  net::Descriptor shared(::memfd_create("copy", MFD_CLOEXEC));
  const pid_t process = ::fork();
  if (process == 0) {
    auto journal = RestJournal::make(places);
    if (!journal) ::_exit(1);
    fill(*journal);
    std::vector<std::byte> bytes(static_cast<std::size_t>(kRecords) + places * kRecordSize);
    const auto size = static_cast<ssize_t>(bytes.size());
    const bool copied = ::pread(journal->descriptor(), bytes.data(), bytes.size(), 0) == size &&
                        ::pwrite(shared.get(), bytes.data(), bytes.size(), 0) == size;
    ::_exit(copied ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
  return shared;
}

std::string problem_of(const net::Descriptor& journal) {
  const auto records = RestJournal::read(journal.get());
  return records ? "" : records.error().message;
}

TEST(RestJournal, TellsTheNextProcessWhatWasWritten) {
  const net::Descriptor journal = journal_of_the_dead(4, [](RestJournal& of) {
    (void)of.write(1, rest_record(10));
    (void)of.write(3, rest_record(20));
    (void)of.write(3, rest_record(30));
    (void)of.write(2, rest_record(40));
    of.clear(2);
    of.open();
  });
  const auto records = RestJournal::read(journal.get());
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 2U);
  for (const std::size_t i : {0U, 1U}) {
    const RestRecord expected = rest_record(i == 0 ? 10 : 30);
    EXPECT_EQ((*records)[i].client, expected.client);
    EXPECT_EQ((*records)[i].server, expected.server);
    EXPECT_EQ((*records)[i].state, expected.state);
  }
}

TEST(RestJournal, OfAProcessThatRunsCountsForNothing) {
  auto journal = RestJournal::make(1);
  ASSERT_TRUE(journal);
  ASSERT_TRUE(journal->write(0, rest_record(1)));
  journal->open();
  const auto records = RestJournal::read(journal->descriptor());
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().message, "process " + std::to_string(::getpid()) + " still runs");
}

TEST(RestJournal, ThatIsNotOpenCountsForNothing) {
  const net::Descriptor journal = journal_of_the_dead(1, [](RestJournal& of) {
    of.open();
    (void)of.write(0, rest_record(1));
    of.close();
  });
  EXPECT_EQ(problem_of(journal), "its process was handing its connections over");
}

TEST(RestJournal, AStateThatIsTooLongIsNotRecorded) {
  auto journal = RestJournal::make(1);
  ASSERT_TRUE(journal);
  RestRecord record = rest_record(1);
  ASSERT_TRUE(journal->write(0, record));
  record.state.set("more", std::string(kRecordSize, 'x'));
  EXPECT_FALSE(journal->write(0, record));
}

TEST(RestJournal, EachDamagedByteOfARecordIsFound) {
  const net::Descriptor journal = journal_of_the_dead(1, [](RestJournal& of) {
    (void)of.write(0, rest_record(7));
    of.open();
  });
  for (off_t at = kRecords; at < kRecords + kRecordSize; ++at) {
    char byte = 0;
    ASSERT_EQ(::pread(journal.get(), &byte, 1, at), 1);
    const auto damaged = static_cast<char>(byte ^ 0x55);
    ASSERT_EQ(::pwrite(journal.get(), &damaged, 1, at), 1);
    const auto records = RestJournal::read(journal.get());
    ASSERT_TRUE(records);
    // Any even sequence number says the same.
    const bool says_the_same = at > kRecords && at < kRecords + 8;
    EXPECT_EQ(records->size(), says_the_same ? 1U : 0U) << at;
    ASSERT_EQ(::pwrite(journal.get(), &byte, 1, at), 1);
  }
}

TEST(RestJournal, ARecordOfWhichAnyPartIsOldIsFound) {
  const net::Descriptor before = journal_of_the_dead(1, [](RestJournal& of) {
    (void)of.write(0, rest_record(7));
    of.open();
  });
  const net::Descriptor after = journal_of_the_dead(1, [](RestJournal& of) {
    (void)of.write(0, rest_record(1007));
    of.open();
  });
  // The words from the second on are written one after the other.
  std::array<std::uint64_t, kRecordSize / 8> words = {};
  std::size_t torn = 0;
  for (std::size_t written = 2; written < words.size(); ++written) {
    ASSERT_EQ(::pread(before.get(), words.data(), kRecordSize, kRecords), kRecordSize);
    const std::array<std::uint64_t, kRecordSize / 8> old = words;
    ASSERT_EQ(::pread(after.get(), words.data(), kRecordSize, kRecords), kRecordSize);
    const std::array<std::uint64_t, kRecordSize / 8> whole = words;
    std::copy(old.begin() + static_cast<std::ptrdiff_t>(written), old.end(),
              words.begin() + static_cast<std::ptrdiff_t>(written));
    if (words == whole) continue;
    ++torn;
    const net::Descriptor copy(::memfd_create("torn", MFD_CLOEXEC));
    std::array<std::byte, kRecords> header = {};
    ASSERT_EQ(::pread(after.get(), header.data(), header.size(), 0), kRecords);
    ASSERT_EQ(::pwrite(copy.get(), header.data(), header.size(), 0), kRecords);
    ASSERT_EQ(::pwrite(copy.get(), words.data(), kRecordSize, kRecords), kRecordSize);
    const auto records = RestJournal::read(copy.get());
    ASSERT_TRUE(records);
    EXPECT_TRUE(records->empty()) << written;
  }
  EXPECT_GT(torn, 5U);
}

TEST(RestJournal, GarbageIsNotAJournal) {
  const net::Descriptor file(::memfd_create("garbage", MFD_CLOEXEC));
  EXPECT_EQ(problem_of(file), "it has 0 bytes");
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint64_t> words(1024);
    for (std::uint64_t& word : words) word = random();
    ASSERT_GT(::pwrite(file.get(), words.data(), words.size() * 8, 0), 0);
    EXPECT_EQ(problem_of(file), "it is something else");
  }
  std::array<int, 2> pipe = {};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  EXPECT_EQ(problem_of(net::Descriptor(pipe[0])), "it is not a file");
  ::close(pipe[1]);
  EXPECT_EQ(problem_of(net::Descriptor()), "it is not a file");
}

TEST(RestJournal, OfAnotherVersionOrLengthCountsForNothing) {
  const net::Descriptor journal = journal_of_the_dead(2, [](RestJournal& of) {
    (void)of.write(0, rest_record(7));
    of.open();
  });
  const std::uint64_t version = 99;
  std::uint64_t right = 0;
  ASSERT_EQ(::pread(journal.get(), &right, sizeof right, 8), 8);
  ASSERT_EQ(::pwrite(journal.get(), &version, sizeof version, 8), 8);
  EXPECT_EQ(problem_of(journal), "it has version 99, and this program knows 1");
  ASSERT_EQ(::pwrite(journal.get(), &right, sizeof right, 8), 8);
  EXPECT_EQ(problem_of(journal), "");
  ASSERT_EQ(::ftruncate(journal.get(), kRecords + kRecordSize), 0);
  EXPECT_EQ(problem_of(journal), "it has another length");
  ASSERT_EQ(::ftruncate(journal.get(), off_t{1} << 40), 0);
  EXPECT_EQ(problem_of(journal), "it has 1099511627776 bytes");
}

}  // namespace
}  // namespace vpfs::proxy
