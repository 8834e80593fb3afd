#include "control/wire/leader/address_round.h"

#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

std::vector<PortAddress> addresses(const std::vector<std::string>& paths) {
  std::vector<PortAddress> made;
  for (const std::string& path : paths) made.push_back({.path = path, .host = ""});
  return made;
}

TEST(AddressRound, AloneItsFailureIsThatOfAll) {
  AddressRound round(addresses({"/a"}));
  EXPECT_TRUE(round.is_alone());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(round.current().path, "/a");
    EXPECT_TRUE(round.fail("is away"));
    EXPECT_EQ(round.problem(), "is away");
  }
}

TEST(AddressRound, AllAreTriedBeforeAPause) {
  AddressRound round(addresses({"/a", "/b", "/c"}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(round.fail("is away"));
    EXPECT_EQ(round.current().path, "/b");
    EXPECT_FALSE(round.fail("is a standby"));
    EXPECT_EQ(round.current().path, "/c");
    EXPECT_TRUE(round.fail("is away"));
    EXPECT_EQ(round.current().path, "/a");
  }
  EXPECT_EQ(round.problem(),
            "no coordinator of /a, /b, /c can be reached: /a, /c: is away; /b: is a standby");
}

TEST(AddressRound, TheOthersComeFirstAfterALoss) {
  AddressRound round(addresses({"/a", "/b", "/c"}));
  EXPECT_FALSE(round.fail("is away"));
  // A connection that does not last long counts as a failure, so that there are pauses.
  EXPECT_FALSE(round.fail("closed it"));
  EXPECT_TRUE(round.fail("closed it"));

  EXPECT_FALSE(round.fail("is away"));
  round.begin();
  EXPECT_EQ(round.current().path, "/b");
  EXPECT_FALSE(round.fail("closed it"));
  EXPECT_EQ(round.current().path, "/c");
  EXPECT_FALSE(round.fail("is away"));
  EXPECT_TRUE(round.fail("is away"));
  EXPECT_EQ(round.current().path, "/b");
}

TEST(AddressRound, TheProblemHasTheOrderOfTheAddressesWhereverItBegan) {
  AddressRound round(addresses({"/a", "/b"}));
  EXPECT_FALSE(round.fail("old"));
  round.begin();
  EXPECT_FALSE(round.fail("second"));
  EXPECT_TRUE(round.fail("first"));
  EXPECT_EQ(round.problem(), "no coordinator of /a, /b can be reached: /a: first; /b: second");
}

TEST(AddressRound, ACurrentOneStaysSoInOtherAddresses) {
  AddressRound round(addresses({"/a", "/b"}));
  EXPECT_FALSE(round.fail("is away"));
  round.change(addresses({"/b", "/c", "/d"}));
  EXPECT_EQ(round.current().path, "/b");
  EXPECT_FALSE(round.fail("closed it"));
  EXPECT_EQ(round.current().path, "/c");
  EXPECT_FALSE(round.fail("is away"));
  EXPECT_TRUE(round.fail("is away"));
}

TEST(AddressRound, TheOneThatWasNamedIsNext) {
  AddressRound round(addresses({"/a", "/b", "/c", "/d"}));
  EXPECT_FALSE(round.fail("serves others"));
  round.prefer({"tcp:elsewhere:1", "unix:/d"});
  EXPECT_EQ(to_string(round.current()), "/d");
  EXPECT_FALSE(round.fail("serves others"));
  round.prefer({"unix:/x", "no address"});
  EXPECT_EQ(to_string(round.current()), "/b") << "the next one that has not failed";
}

// A stale member names one that is dead: the third one is tried all the same.
TEST(AddressRound, OneThatHasFailedIsNotTriedAgainBeforeAllWere) {
  AddressRound round(addresses({"/a", "/b", "/c"}));
  EXPECT_FALSE(round.fail("is away"));
  EXPECT_EQ(to_string(round.current()), "/b");
  EXPECT_FALSE(round.fail("/a serves it"));
  round.prefer({"/a"});
  EXPECT_EQ(to_string(round.current()), "/c");
  EXPECT_TRUE(round.fail("/b serves it"));
  round.prefer({"/b"});
  EXPECT_EQ(to_string(round.current()), "/b") << "after the pause";
}

}  // namespace
}  // namespace vpfs::control
