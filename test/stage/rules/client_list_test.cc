#include "stage/rules/client_list.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/rules/address.h"
#include "test/stage/some_names.h"

namespace vpfs::stage {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

class ClientList : public ::testing::Test {
 protected:
  std::vector<std::string> clients(std::string_view text) {
    std::vector<std::string> made;
    const Result<void> added = add_clients(text, &names_, made);
    EXPECT_TRUE(added) << added.error().message;
    return made;
  }
  std::string error_of(std::string_view text) {
    std::vector<std::string> made = {"before"};
    const Result<void> added = add_clients(text, &names_, made);
    EXPECT_THAT(made, ElementsAre("before")) << "an error changes nothing";
    return added ? "none" : added.error().message;
  }

  SomeNames names_;
};

TEST_F(ClientList, AddressesAndBlocksStayAsTheyAre) {
  EXPECT_THAT(clients("10.0.0.1"), ElementsAre("10.0.0.1"));
  EXPECT_THAT(clients("10.0.0.0/8"), ElementsAre("10.0.0.0/8"));
  EXPECT_THAT(clients("fd00::/8"), ElementsAre("fd00::/8"));
}

TEST_F(ClientList, RangesOfAddressesBecomeBlocks) {
  EXPECT_THAT(clients("10.0.0.[1-4]"), ElementsAre("10.0.0.1", "10.0.0.2/31", "10.0.0.4"));
  EXPECT_THAT(clients("10.0.0.*"), ElementsAre("10.0.0.0/24"));
  EXPECT_THAT(clients("10.[0-3].*.*"), ElementsAre("10.0.0.0/14"));
  EXPECT_THAT(clients("10.0.[0-1].7"), ElementsAre("10.0.0.7", "10.0.1.7"));
  EXPECT_THAT(clients("10.0.0.[1,5-6]"), ElementsAre("10.0.0.1", "10.0.0.5", "10.0.0.6"));
  EXPECT_THAT(clients("*.*.*.*"), ElementsAre("0.0.0.0/0"));
  EXPECT_THAT(clients("[255].255.255.[254-255]"), ElementsAre("255.255.255.254/31"));
}

// Every address of the range is in exactly one block, and no other is.
TEST_F(ClientList, ARangeIsItsAddressesAndNoOthers) {
  for (int first = 0; first < 256; first += 31) {
    for (int last = first; last < 256; last += 17) {
      const std::vector<std::string> blocks = clients(fmt::format("10.0.0.[{}-{}]", first, last));
      for (int each = 0; each < 256; ++each) {
        const Address address = Address::parse(fmt::format("10.0.0.{}", each)).value();
        const auto count = std::ranges::count_if(blocks, [&](const std::string& block) {
          return AddressBlock::parse(block)->contains(address);
        });
        ASSERT_EQ(count, each >= first && each <= last ? 1 : 0) << first << " " << last;
      }
    }
  }
}

TEST_F(ClientList, HostsAreLookedUp) {
  EXPECT_THAT(clients("login1"), ElementsAre("10.0.0.1", "fd00::1"));
  EXPECT_THAT(clients("n[1-3,7]"), ElementsAre("10.0.1.1", "10.0.1.2", "10.0.1.3", "10.0.1.7"));
  EXPECT_THAT(clients("n[009-010]"), ElementsAre("10.0.1.9", "10.0.1.10"));
  EXPECT_EQ(clients("n[1-128]").size(), 128U);
  EXPECT_EQ(error_of("n[127-130]"), "the host 'n129' is not known");
  EXPECT_EQ(error_of("n[1-"), "'n[1-': [ is never closed: expected a range such as n[1-128]");
  EXPECT_EQ(error_of("n[a-b]"),
            "'n[a-b]': \"a-b\" is not a range of numbers from 0 to 4294967295: expected one such "
            "as 1-128");
  EXPECT_EQ(error_of("n[7-3]"), "'n[7-3]': the range 7-3 ends before it begins");
}

// As a batch system writes the nodes of a job that got what was free.
TEST_F(ClientList, AListOfScatteredNodesMayBeLong) {
  std::string odd;
  for (int each = 1; each <= 127; each += 2)
    odd += fmt::format("{}{:03}", each > 1 ? "," : "", each);
  ASSERT_GT(odd.size(), 250U);
  EXPECT_EQ(clients("n[" + odd + "]").size(), 64U);
  EXPECT_THAT(error_of("n[" + odd + ",129]"), EndsWith("the host 'n129' is not known"));
}

TEST_F(ClientList, ALongTextStandsForNoMoreThanNamesAreLong) {
  const std::string longest(256, 'x');
  const std::string refused = "is not an IP address or CIDR block";
  for (const std::string& text :
       {longest, longest.substr(1) + "[1-9]", "n[1-9]" + longest, std::string(70'000, 'n')}) {
    const std::string error = error_of(text);
    EXPECT_THAT(error, EndsWith(refused));
    EXPECT_LT(error.size(), 300U);
  }
  std::string many = "x";
  for (int i = 0; i < 20; ++i) many += "[00000000000000000001]";
  EXPECT_THAT(error_of(many), EndsWith(refused));
}

TEST_F(ClientList, OtherTextsAreRefused) {
  for (const char* text : {"", "10.0.0", "10.0.0.0/33", "10.0.0.1-9", "n*", "a b", ".x"}) {
    EXPECT_EQ(error_of(text), fmt::format("'{}' is not an IP address or CIDR block", text));
  }
  EXPECT_EQ(error_of("10.0.0.[1-256]"),
            "'10.0.0.[1-256]': \"1-256\" is not a range of numbers from 0 to 255: expected one "
            "such as 1-128");
}

TEST_F(ClientList, AShortTextStandsForABoundedNumberOfAddresses) {
  const std::string too_many = "stands for more than 65536 addresses";
  EXPECT_EQ(clients("10.*.*.7").size(), kMostClients);
  EXPECT_EQ(error_of("*.*.*.7"), "'*.*.*.7' " + too_many);
  EXPECT_EQ(error_of("x[1-9999999]"), "'x[1-9999999]' " + too_many);
  EXPECT_EQ(error_of("x[1-999][1-999]"), "'x[1-999][1-999]' " + too_many);
  EXPECT_EQ(names_.lookups(), 0) << "the bound comes before the look-ups";
}

}  // namespace
}  // namespace vpfs::stage
