#include "control/wire/host_lookup.h"

#include <optional>

#include <asio/co_spawn.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/endpoint.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

HostLookup::Found look_up(const std::string& host) {
  asio::io_context context(1);
  HostLookup lookup(context, {.path = "", .host = host, .port = 7311});
  std::optional<HostLookup::Found> found;
  asio::co_spawn(context, lookup.wait(30s),
                 [&](const std::exception_ptr&, HostLookup::Found come) { found = come; });
  context.run();
  EXPECT_TRUE(found && lookup.is_done());
  return found.value_or(std::unexpected("nothing"));
}

TEST(HostLookup, FindsTheAddressesOfAHost) {
  const auto number = look_up("::1");
  ASSERT_TRUE(number);
  ASSERT_EQ(number->size(), 1U);
  EXPECT_EQ(net::to_string(number->front()), "[::1]:7311");
  const auto name = look_up("localhost");
  ASSERT_TRUE(name) << name.error();
  ASSERT_FALSE(name->empty());
  for (const net::Endpoint& each : *name) {
    EXPECT_TRUE(each.address().is_loopback());
    EXPECT_EQ(each.port(), 7311);
  }
}

TEST(HostLookup, SaysWhichHostIsNotKnown) {
  const auto found = look_up("no such host");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error(), HasSubstr("host no such host not found"));
}

// Whether the thread is done before, between or after them.
TEST(HostLookup, MayBeGivenUpAtAnyTime) {
  for (int i = 0; i < 20; ++i) {
    asio::io_context context(1);
    std::optional<HostLookup> lookup;
    lookup.emplace(context, PortAddress{.path = "", .host = "localhost", .port = 1});
    asio::co_spawn(context, lookup->wait(30s), asio::detached);
    context.poll();
    lookup.reset();
    context.run_for(1ms * i);
  }
}

}  // namespace
}  // namespace vpfs::control
