#include "tools/load/owner.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vpfs::load {
namespace {

TEST(LoadProcess, IsReadBack) {
  const LoadProcess owner = {.host = "node-7", .pid = 4711};
  EXPECT_EQ(parse_owner(owner_text(owner)), owner);
  for (const char* text : {"", "node", "node.", "node.x", "node.7x", "node.-3", "node.0"}) {
    EXPECT_EQ(parse_owner(text), std::nullopt) << text;
  }
}

TEST(LoadProcess, ThisProcessHasNotEnded) {
  EXPECT_FALSE(has_ended(this_owner()));
}

TEST(LoadProcess, AProcessThatIsGoneHasEnded) {
  LoadProcess owner = this_owner();
  owner.pid = ::fork();
  if (owner.pid == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(owner.pid, nullptr, 0), owner.pid);
  EXPECT_TRUE(has_ended(owner));
}

TEST(LoadProcess, AProcessOfAnotherHostIsNotKnownToHaveEnded) {
  LoadProcess owner = this_owner();
  owner.pid = ::fork();
  if (owner.pid == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(owner.pid, nullptr, 0), owner.pid);
  owner.host += "x";
  EXPECT_FALSE(has_ended(owner));
}

}  // namespace
}  // namespace vpfs::load
