#include "control/admin/past_clients.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Client client(const std::string& address, const std::string& virtual_pfs,
              std::optional<std::uint32_t> uid, std::optional<std::uint32_t> owner = {}) {
  Client made;
  made.set_address(address);
  Seen& seen = *made.add_seen();
  seen.set_virtual_pfs(virtual_pfs);
  if (uid) seen.set_uid(*uid);
  if (owner) seen.set_owner(*owner);
  return made;
}

class PastClientsTest : public ::testing::Test {
 protected:
  // The last hour's.
  [[nodiscard]] std::set<std::string, std::less<>> last_hour(const std::string& who) const {
    return past_.virtual_pfs_of(read_asked(who, nullptr), now_ - hours(1), now_);
  }

  PastClients past_;
  WallTime now_{hours(24 * 365)};
};

TEST_F(PastClientsTest, AUserAndAClientAreKnownWhenTheirConnectionsHaveEnded) {
  past_.note({client("10.0.0.1", "job-1", 1001), client("10.0.0.2", "job-2", 1001)}, now_);
  past_.note({client("10.0.0.2", "job-3", 1002, 1003)}, now_);
  now_ += minutes(30);
  past_.note({}, now_);
  EXPECT_THAT(last_hour("1001"), ElementsAre("job-1", "job-2"));
  EXPECT_THAT(last_hour("1003"), ElementsAre("job-3")) << "the owner of files";
  EXPECT_THAT(last_hour("10.0.0.2"), ElementsAre("job-2", "job-3"));
  EXPECT_THAT(last_hour("1004"), IsEmpty());
  EXPECT_THAT(last_hour(""), IsEmpty());
}

TEST_F(PastClientsTest, OnlyTheTimeThatIsAskedAboutCounts) {
  const WallTime first = now_;
  for (int i = 0; i < 60; ++i) past_.note({client("10.0.0.1", "a", 1)}, now_ += minutes(1));
  now_ += hours(3);
  past_.note({client("10.0.0.1", "b", 1)}, now_);
  EXPECT_THAT(last_hour("1"), ElementsAre("b"));
  const Asked asked = read_asked("1", nullptr);
  EXPECT_THAT(past_.virtual_pfs_of(asked, first + minutes(20), first + minutes(21)),
              ElementsAre("a"));
  EXPECT_THAT(past_.virtual_pfs_of(asked, first, now_), ElementsAre("a", "b"));
  past_.note({}, now_ += hours(23));
  EXPECT_EQ(past_.size(), 1U);
}

TEST_F(PastClientsTest, TheyAreBoundedAndTheOldestGoFirst) {
  std::vector<Client> many;
  for (std::uint32_t uid = 0; uid < PastClients::kMost; ++uid) {
    many.push_back(client("10.0.0.1", "old", uid));
  }
  past_.note(many, now_);
  past_.note({client("10.0.0.1", "new", 1'000'000)}, now_ += minutes(1));
  EXPECT_EQ(past_.size(), PastClients::kMost);
  EXPECT_THAT(last_hour("1000000"), ElementsAre("new"));
}

}  // namespace
}  // namespace vpfs::control
