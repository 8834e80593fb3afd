#include "fuse/posix/node_addresses.h"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <unistd.h>

#include "control/admin/host_names.h"
#include "stage/rules/address.h"

namespace vpfs::fuse {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NodeAddresses, AreAddressesAndHaveTheLoopbackLast) {
  const Node node = this_node();
  for (const std::string& each : node.addresses) EXPECT_TRUE(stage::Address::parse(each)) << each;
  EXPECT_THAT(node.addresses, Contains("127.0.0.1"));
  EXPECT_THAT(node.addresses, Contains("127.0.1.1"));
  EXPECT_THAT(node.addresses, Contains("::1"));
  const auto is_loopback = [](const std::string& each) { return each.starts_with("127."); };
  const auto first = std::ranges::find_if(node.addresses, is_loopback);
  EXPECT_TRUE(std::all_of(first, node.addresses.end(), [&](const std::string& each) {
    return is_loopback(each) || each == "::1";
  }));
  std::array<char, 256> name = {};
  ASSERT_EQ(::gethostname(name.data(), name.size()), 0);
  EXPECT_THAT(node.names, Contains(name.data()));
}

TEST(HostNames, ItsOwnNameIsKnownWithoutANameService) {
  control::HostNames names;
  EXPECT_THAT(names.addresses("n1.invalid"), IsEmpty());
  names.set_own({"n1.invalid", "n1-invalid"}, {"192.0.2.1", "127.0.0.1"});
  EXPECT_THAT(names.addresses("n1.invalid"), ElementsAre("192.0.2.1"));
  EXPECT_THAT(names.addresses("n1-invalid"), ElementsAre("192.0.2.1"));
  EXPECT_THAT(names.addresses("n2.invalid"), IsEmpty());
  names.set_own({"n1.invalid"}, {"192.0.2.2"});
  EXPECT_THAT(names.addresses("n1.invalid"), ElementsAre("192.0.2.2"));
}

TEST(HostNames, AddressesOfItsOwnNameThatItHasAreNotAddedTo) {
  control::HostNames names;
  names.set_own({"localhost"}, {"192.0.2.1", "127.0.0.1", "::1"});
  EXPECT_THAT(names.addresses("localhost"), ::testing::Not(Contains("192.0.2.1")));
}

}  // namespace
}  // namespace vpfs::fuse
