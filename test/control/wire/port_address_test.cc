#include "control/wire/port_address.h"

#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

TEST(PortAddress, IsAPathOrAHostWithAPort) {
  const auto text_of = [](std::string_view text) {
    const auto address = parse_port_address(text);
    return address ? (address->is_unix() ? "unix " : "tcp ") + to_string(*address)
                   : address.error().message;
  };
  EXPECT_EQ(text_of("/run/vpfs/a.sock"), "unix /run/vpfs/a.sock");
  EXPECT_EQ(text_of("unix:a.sock"), "unix a.sock");
  EXPECT_EQ(text_of("./a.sock"), "unix ./a.sock");
  EXPECT_EQ(text_of("tcp:stor0:7311"), "tcp stor0:7311");
  EXPECT_EQ(text_of("stor0:7311"), "tcp stor0:7311");
  EXPECT_EQ(text_of("[::1]:7311"), "tcp [::1]:7311");
}

TEST(PortAddress, WhatIsNoneIsNamed) {
  for (const std::string bad :
       {"", "stor0", "unix:", "tcp:", "tcp:stor0", "stor0:0", "stor0:x", "stor0:70000"}) {
    const auto address = parse_port_address(bad);
    ASSERT_FALSE(address) << bad;
    EXPECT_NE(address.error().message.find("\"" + bad + "\""), std::string::npos);
  }
  EXPECT_FALSE(parse_port_address("/" + std::string(200, 'x')));
}

}  // namespace
}  // namespace vpfs::control
