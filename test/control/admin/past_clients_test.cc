#include "control/admin/past_clients.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Client client(const std::string& address, const std::string& virtual_pfs,
              std::optional<std::uint32_t> uid, std::uint64_t requests = 1,
              std::optional<std::uint32_t> owner = {}) {
  Client made;
  made.set_address(address);
  Seen& seen = *made.add_seen();
  seen.set_virtual_pfs(virtual_pfs);
  seen.set_requests(requests);
  if (uid) seen.set_uid(*uid);
  if (owner) seen.set_owner(*owner);
  return made;
}

class PastClientsTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::set<std::string, std::less<>> in(const std::string& who, WallTime from,
                                                      WallTime to) const {
    return past_.virtual_pfs_of(read_asked(who, nullptr), from, to);
  }
  [[nodiscard]] std::set<std::string, std::less<>> last_hour(const std::string& who) const {
    return in(who, now_ - hours(1), now_);
  }
  // Notes each half minute for so long, with so many requests more each time.
  void stay(minutes time, const std::string& virtual_pfs, std::uint64_t more) {
    for (const WallTime end = now_ + time; now_ < end;) {
      now_ += seconds(30);
      past_.note({client("10.0.0.1", virtual_pfs, 1, requests_ += more)}, now_);
    }
  }
  void nobody(minutes time) {
    for (const WallTime end = now_ + time; now_ < end;) past_.note({}, now_ += seconds(30));
  }

  PastClients past_;
  WallTime now_{hours(24 * 365)};
  std::uint64_t requests_ = 0;
};

TEST_F(PastClientsTest, AUserAndAClientAreKnownWhenTheirConnectionsHaveEnded) {
  past_.note({client("10.0.0.1", "job-1", 1001), client("10.0.0.2", "job-2", 1001)}, now_);
  past_.note({client("10.0.0.2", "job-3", 1002, 1, 1003), client("10.0.0.2", "(retired)", 1001)},
             now_);
  nobody(minutes(30));
  EXPECT_THAT(last_hour("1001"), ElementsAre("job-1", "job-2"));
  EXPECT_THAT(last_hour("1003"), ElementsAre("job-3")) << "the owner of files";
  EXPECT_THAT(last_hour("10.0.0.2"), ElementsAre("job-2", "job-3"));
  EXPECT_THAT(last_hour("1004"), IsEmpty());
  EXPECT_THAT(last_hour(""), IsEmpty());
}

TEST_F(PastClientsTest, OnlyTheTimeThatIsAskedAboutCounts) {
  const WallTime first = now_;
  stay(minutes(60), "a", 1);
  nobody(minutes(180));
  stay(minutes(1), "b", 1);
  EXPECT_THAT(last_hour("1"), ElementsAre("b"));
  EXPECT_THAT(in("1", first + minutes(20), first + minutes(21)), ElementsAre("a"));
  EXPECT_THAT(in("1", first + minutes(90), first + minutes(100)), IsEmpty());
  EXPECT_THAT(in("1", first, now_), ElementsAre("a", "b"));
  nobody(minutes(23 * 60));
  EXPECT_EQ(past_.ended(), 1U);
}

// A connection says what its requests were in for as long as it lives.
TEST_F(PastClientsTest, AnIdleConnectionIsNotThere) {
  const WallTime first = now_;
  stay(minutes(10), "a", 5);
  stay(minutes(120), "a", 0);
  EXPECT_THAT(in("1", first, first + minutes(10)), ElementsAre("a"));
  EXPECT_THAT(in("1", first + minutes(30), first + minutes(120)), IsEmpty());
  EXPECT_THAT(last_hour("1"), IsEmpty());
  stay(minutes(1), "a", 5);
  EXPECT_THAT(last_hour("1"), ElementsAre("a"));
  EXPECT_THAT(in("1", first + minutes(30), first + minutes(120)), IsEmpty());
}

// A client of two storage targets has a row for each, and does nothing in both.
TEST_F(PastClientsTest, AnIdleConnectionWithSeveralRowsIsNotThereEither) {
  const WallTime first = now_;
  Client of_two = client("10.0.0.1", "a", 1, 1000);
  *of_two.add_seen() = client("10.0.0.1", "a", 1, 50).seen(0);
  for (const WallTime end = now_ + minutes(120); now_ < end;) {
    past_.note({of_two}, now_ += seconds(30));
  }
  EXPECT_THAT(in("1", first, first + minutes(10)), ElementsAre("a"));
  EXPECT_THAT(last_hour("1"), IsEmpty());
  of_two.mutable_seen(1)->set_requests(51);
  past_.note({of_two}, now_ += seconds(30));
  EXPECT_THAT(last_hour("1"), ElementsAre("a"));
}

TEST_F(PastClientsTest, TheyAreBoundedAndThePastIsNotForgottenForThePresent) {
  past_.note({client("10.0.0.1", "ended", 1'000'000)}, now_);
  nobody(minutes(20));
  std::vector<Client> many;
  for (std::uint32_t uid = 0; uid < PastClients::kMost + 100; ++uid) {
    many.push_back(client("10.0.0.1", "present", uid));
  }
  past_.note(many, now_);
  EXPECT_THAT(last_hour("1000000"), ElementsAre("ended"));
  EXPECT_THAT(last_hour("7"), ElementsAre("present"));
  nobody(minutes(20));
  EXPECT_EQ(past_.ended(), PastClients::kMost);
  EXPECT_THAT(last_hour("1000000"), IsEmpty()) << "it ended before all the others";
}

}  // namespace
}  // namespace vpfs::control
