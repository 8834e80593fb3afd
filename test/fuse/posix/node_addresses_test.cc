#include "fuse/posix/node_addresses.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// Notes what it is asked for, and knows every host as another one.
class OtherNameService final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string&) const override { return {}; }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string&) const override { return {}; }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override {
    asked.push_back(host);
    return {"198.51.100.7"};
  }

  mutable std::vector<std::string> asked;
};

TEST(HostNames, ItsOwnNameIsNotAskedFor) {
  const OtherNameService service;
  control::HostNames names(service);
  names.set_own({"n1"}, {"192.0.2.1", "127.0.0.1"});
  EXPECT_TRUE(names.missing({.users = {}, .groups = {}, .hosts = {"n1"}}).empty());
  names.find_host("n1");
  names.bound(0);  // forgets what is kept
  EXPECT_THAT(names.addresses("n1"), ElementsAre("192.0.2.1"));
  EXPECT_THAT(service.asked, IsEmpty());
  names.set_own({"n2"}, {"192.0.2.1"});
  EXPECT_THAT(names.addresses("n1"), ElementsAre("198.51.100.7"));
}

}  // namespace
}  // namespace vpfs::fuse
