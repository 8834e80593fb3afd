#include "client/orangefs/caches.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/orangefs/change.h"
#include "test/support/manual_clock.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;

constexpr orangefs::Handle kDirectory = 7;
constexpr orangefs::Handle kOther = 8;

class CachesTest : public testing::Test {
 protected:
  void put(orangefs::Handle object, const CallerPtr& caller, std::uint32_t permissions) {
    orangefs::Attributes attributes;
    attributes.permissions = permissions;
    caches_.put_attributes(caches_.attributes_ticket(object, clock_.now()), object, caller,
                           std::make_shared<const orangefs::Attributes>(attributes));
  }
  // The permissions that are known; 0: none are.
  std::uint32_t known(orangefs::Handle object, const CallerPtr& caller) {
    const auto found = caches_.attributes(object, *caller, clock_.now());
    return found ? found->permissions : 0;
  }
  void put(const std::string& name, const CallerPtr& caller, orangefs::Handle handle,
           orangefs::Handle directory = kDirectory) {
    caches_.put_name(caches_.name_ticket(directory, name, clock_.now()), directory, name, caller,
                     handle);
  }
  // 0: not known.
  orangefs::Handle known(const std::string& name, const CallerPtr& caller,
                         orangefs::Handle directory = kDirectory) {
    return caches_.name(directory, name, *caller, clock_.now()).value_or(0);
  }
  void put_directory(const CallerPtr& caller, std::uint64_t mtime) {
    caches_.put_directory(caches_.directory_ticket(kDirectory, clock_.now()), kDirectory, caller,
                          {.handle = kDirectory, .mtime = mtime});
  }
  // 0: the directory is not known.
  std::uint64_t known_mtime(const CallerPtr& caller) {
    const auto found = caches_.directory(kDirectory, *caller, clock_.now());
    return found ? found->stat.mtime : 0;
  }
  void pass(Duration time) { clock_.set(clock_.now() + time); }

  test::ManualClock clock_{TimePoint(1000s)};
  Caches caches_{1s, 3s, 1600};
  CallerPtr alice_ = std::make_shared<const Caller>(Caller{.uid = 1, .gid = 10});
  CallerPtr bob_ = std::make_shared<const Caller>(Caller{.uid = 2, .gid = 10});
};

TEST_F(CachesTest, AnEntryLastsForItsTimeoutAndNoLonger) {
  put(kDirectory, alice_, 0755);
  put("a", alice_, 50);
  pass(1s - 1ns);
  EXPECT_EQ(known(kDirectory, alice_), 0755U);
  pass(1ns);
  EXPECT_EQ(known(kDirectory, alice_), 0U);
  EXPECT_EQ(known("a", alice_), 50U) << "names have a time of their own";
  pass(2s);
  EXPECT_EQ(known("a", alice_), 0U);
  EXPECT_EQ(caches_.entries(), 0U);
}

TEST_F(CachesTest, TheAgeCountsFromTheQuestion) {
  const auto ticket = caches_.name_ticket(kDirectory, "a", clock_.now());
  pass(2s);
  caches_.put_name(ticket, kDirectory, "a", alice_, 50);
  EXPECT_EQ(known("a", alice_), 50U);
  pass(1s);
  EXPECT_EQ(known("a", alice_), 0U);
}

TEST_F(CachesTest, EachCallerHasEntriesOfItsOwnWhateverItsJob) {
  put(kDirectory, alice_, 0755);
  put("a", alice_, 50);
  EXPECT_EQ(known(kDirectory, bob_), 0U);
  EXPECT_EQ(known("a", bob_), 0U);
  const auto with = [](std::uint32_t gid, std::vector<std::uint32_t> groups, std::string jobid) {
    return std::make_shared<const Caller>(
        Caller{.uid = 1, .gid = gid, .groups = std::move(groups), .jobid = std::move(jobid)});
  };
  EXPECT_EQ(known("a", with(11, {}, "")), 0U);
  EXPECT_EQ(known("a", with(10, {12}, "")), 0U);
  EXPECT_EQ(known("a", with(10, {}, "job")), 50U);
}

TEST_F(CachesTest, AChangeIsForgottenForAllCallers) {
  for (const CallerPtr& caller : {alice_, bob_}) {
    put(kDirectory, caller, 0755);
    put("a", caller, 50);
    put("b", caller, 51);
    put("a", caller, 52, kOther);
  }
  caches_.forget_name(kDirectory, "a");
  for (const CallerPtr& caller : {alice_, bob_}) {
    EXPECT_EQ(known("a", caller), 0U);
    EXPECT_EQ(known("b", caller), 51U);
    EXPECT_EQ(known(kDirectory, caller), 0755U);
  }
  caches_.forget(kDirectory);
  for (const CallerPtr& caller : {alice_, bob_}) {
    EXPECT_EQ(known("b", caller), 0U);
    EXPECT_EQ(known(kDirectory, caller), 0U);
    EXPECT_EQ(known("a", caller, kOther), 52U);
  }
}

TEST_F(CachesTest, AnAnswerFromBeforeAChangeDoesNotEnterAfterIt) {
  const auto attributes = caches_.attributes_ticket(kDirectory, clock_.now());
  const auto a = caches_.name_ticket(kDirectory, "a", clock_.now());
  const auto b = caches_.name_ticket(kDirectory, "b", clock_.now());
  caches_.forget_name(kDirectory, "a");
  caches_.put_name(a, kDirectory, "a", alice_, 50);
  EXPECT_EQ(known("a", alice_), 0U);
  caches_.put_name(b, kDirectory, "b", alice_, 51);
  EXPECT_EQ(known("b", alice_), 51U) << "it was not about this name";
  caches_.put_attributes(attributes, kDirectory, alice_,
                         std::make_shared<const orangefs::Attributes>());
  EXPECT_NE(caches_.attributes(kDirectory, *alice_, clock_.now()), nullptr)
      << "nor about the directory's own attributes";

  const auto before = caches_.attributes_ticket(kDirectory, clock_.now());
  caches_.forget(kDirectory);
  caches_.put_attributes(before, kDirectory, alice_,
                         std::make_shared<const orangefs::Attributes>());
  EXPECT_EQ(caches_.attributes(kDirectory, *alice_, clock_.now()), nullptr);
  caches_.put_name(b, kDirectory, "b", alice_, 51);
  EXPECT_EQ(known("b", alice_), 0U) << "its directory has changed";
}

TEST_F(CachesTest, ANameThatIsMadeIsKnownToItsMakerAndForgottenForOthers) {
  put("a", bob_, 50);
  const auto before = caches_.name_ticket(kDirectory, "a", clock_.now());
  const auto asked_by_bob = caches_.name_ticket(kDirectory, "a", clock_.now());
  caches_.name_made(before, kDirectory, "a", alice_, 51);
  EXPECT_EQ(known("a", alice_), 51U);
  EXPECT_EQ(known("a", bob_), 0U);
  caches_.put_name(asked_by_bob, kDirectory, "a", bob_, 50);
  EXPECT_EQ(known("a", bob_), 0U) << "asked before the name was made";
}

TEST_F(CachesTest, ANameThatWasChangedWhileItWasMadeIsNotKnown) {
  put("a", bob_, 50);
  const auto before = caches_.name_ticket(kDirectory, "a", clock_.now());
  caches_.forget_name(kDirectory, "a");
  put("a", bob_, 52);
  caches_.name_made(before, kDirectory, "a", alice_, 51);
  EXPECT_EQ(known("a", alice_), 0U);
  EXPECT_EQ(known("a", bob_), 0U);
}

TEST_F(CachesTest, AnAnswerToAnEarlierQuestionDoesNotDisplaceALaterOne) {
  const auto early = caches_.name_ticket(kDirectory, "a", clock_.now());
  pass(1ms);
  const auto late = caches_.name_ticket(kDirectory, "a", clock_.now());
  caches_.put_name(late, kDirectory, "a", alice_, 51);
  caches_.put_name(early, kDirectory, "a", alice_, 50);
  EXPECT_EQ(known("a", alice_), 51U);
}

TEST_F(CachesTest, TheOldestEntriesMakeRoom) {
  for (orangefs::Handle handle = 1; handle <= 10000; ++handle) put(handle, alice_, 0755);
  EXPECT_LE(caches_.entries(), 1600U);
  EXPECT_GT(caches_.entries(), 1000U);
  EXPECT_EQ(known(10000, alice_), 0755U);
  EXPECT_EQ(known(1, alice_), 0U);
  put(10000, alice_, 0700);
  EXPECT_EQ(known(10000, alice_), 0700U) << "the newer one counts";
}

TEST_F(CachesTest, WithoutATimeoutNothingIsKept) {
  Caches none(Duration::zero(), Duration::zero(), 100);
  none.put_name(none.name_ticket(1, "a", clock_.now()), 1, "a", alice_, 50);
  EXPECT_EQ(none.entries(), 0U);
}

TEST_F(CachesTest, ADirectoryHasTheTimeOfTheMountsOwnChanges) {
  put_directory(alice_, 500);
  pass(100ms);
  caches_.entries_changed(kDirectory, 501, clock_.now());
  EXPECT_EQ(known_mtime(alice_), 501U);
  caches_.entries_changed(kOther, 600, clock_.now());
  EXPECT_EQ(known_mtime(alice_), 501U);
  put_directory(bob_, 500);
  EXPECT_EQ(known_mtime(bob_), 501U) << "the answer may be from before the change";
  pass(1ns);
  put_directory(bob_, 450);
  EXPECT_EQ(known_mtime(bob_), 450U) << "its time was set since";
  pass(900ms);
  EXPECT_EQ(known_mtime(alice_), 0U) << "it is as old as its question, however often it changed";
}

TEST_F(CachesTest, ADirectoryIsNotKnownWhereAChangeMayHaveFailed) {
  put_directory(alice_, 500);
  {
    Change change(&caches_, clock_);
    change.name(kDirectory, "a");
  }
  EXPECT_EQ(known_mtime(alice_), 0U);
  put_directory(alice_, 500);
  {
    Change change(&caches_, clock_);
    change.name(kDirectory, "a");
    change.happened();
  }
  EXPECT_GT(known_mtime(alice_), 500U);
  const auto before = caches_.directory_ticket(kDirectory, clock_.now());
  caches_.forget(kDirectory);
  caches_.put_directory(before, kDirectory, alice_, {.handle = kDirectory, .mtime = 500});
  EXPECT_EQ(known_mtime(alice_), 0U) << "its attributes were set meanwhile";
}

TEST(DirectoryChanges, OnlyRecentOnesAreKept) {
  DirectoryChanges changes(1s);
  TimePoint now(1000s);
  for (orangefs::Handle directory = 0; directory < 10'000; ++directory) {
    changes.note(directory, 7, now += 10ms);
  }
  EXPECT_LT(changes.size(), 500U);
  EXPECT_EQ(changes.since(9'999, now), 7U);
  EXPECT_EQ(changes.since(9'999, now + 1ns), std::nullopt);
}

TEST_F(CachesTest, AnOperationsChangesAreForgottenWhenItEnds) {
  put(kDirectory, alice_, 0755);
  {
    Change change(&caches_, clock_);
    change.object(kDirectory);
    change.name(kOther, "a");
    put("a", alice_, 50, kOther);
    EXPECT_EQ(known(kDirectory, alice_), 0755U);
  }
  EXPECT_EQ(known(kDirectory, alice_), 0U);
  EXPECT_EQ(known("a", alice_, kOther), 0U);
}

// A server with one number that changes. Writers forget after each change; readers must never find
// a number that is older than the last change that had ended before they looked.
TEST_F(CachesTest, ManyThreadsNeverFindWhatHadChangedBefore) {
  std::atomic<orangefs::Handle> at_server{1};
  std::atomic<orangefs::Handle> acknowledged{1};
  std::atomic<int> found{0};
  std::atomic<int> stale{0};
  const TimePoint now = clock_.now();
  const auto read = [&] {
    for (int i = 0; i < 20000; ++i) {
      const orangefs::Handle least = acknowledged;
      if (const auto cached = caches_.name(kDirectory, "a", *alice_, now)) {
        ++found;
        if (*cached < least) ++stale;
        continue;
      }
      const auto ticket = caches_.name_ticket(kDirectory, "a", now);
      const orangefs::Handle answer = at_server;
      if (i % 8 == 0) std::this_thread::yield();
      caches_.put_name(ticket, kDirectory, "a", alice_, answer);
    }
  };
  std::atomic<bool> done{false};
  std::thread writer([&] {
    while (!done) {
      const orangefs::Handle next = ++at_server;
      caches_.forget_name(kDirectory, "a");
      acknowledged = next;
      std::this_thread::yield();
    }
  });
  std::array readers = {std::thread(read), std::thread(read), std::thread(read)};
  for (std::thread& reader : readers) reader.join();
  done = true;
  writer.join();
  EXPECT_EQ(stale, 0);
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace vpfs::client
