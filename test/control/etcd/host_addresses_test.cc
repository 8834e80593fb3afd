#include "control/etcd/host_addresses.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "control/etcd/etcd_client.h"
#include "net/socket_options.h"
#include "test/control/etcd/fake_etcd.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(HostAddresses, AddressesTakeTurns) {
  HostAddresses addresses("etcd", [](const std::string& host) -> HostAddresses::Addresses {
    EXPECT_EQ(host, "etcd");
    return std::vector<std::string>{"192.0.2.1", "192.0.2.2"};
  });
  EXPECT_EQ(addresses.known(), 0U);
  EXPECT_EQ(addresses.next(10s), "192.0.2.1");
  EXPECT_EQ(addresses.next(10s), "192.0.2.2");
  EXPECT_EQ(addresses.next(10s), "192.0.2.1");
  EXPECT_EQ(addresses.known(), 2U);
}

TEST(HostAddresses, NumbersAreNotLookedUp) {
  for (const std::string host : {"127.0.0.1", "::1"}) {
    HostAddresses addresses(host, [](const std::string&) -> HostAddresses::Addresses {
      ADD_FAILURE();
      return fail("looked up");
    });
    EXPECT_EQ(addresses.next(0s), host);
  }
}

TEST(HostAddresses, ANameServiceThatHangsIsWaitedForOnceAndNotForLong) {
  std::promise<void> ends;
  // Threads that look up may outlive the test.
  const auto asked = std::make_shared<std::atomic<int>>(0);
  HostAddresses addresses("etcd", [asked, end = ends.get_future().share()](const std::string&) {
    ++*asked;
    end.wait();
    return HostAddresses::Addresses(std::vector<std::string>{"192.0.2.1"});
  });
  for (int i = 0; i < 3; ++i) {
    const Result<std::string> none = addresses.next(10ms);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message, "its host's name was not found in time");
  }
  EXPECT_EQ(*asked, 1);
  ends.set_value();
  EXPECT_EQ(addresses.next(10s), "192.0.2.1");
}

TEST(HostAddresses, WhatWasFoundIsUsedWhileTheNameServiceFails) {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  HostAddresses addresses("etcd", [asked](const std::string&) -> HostAddresses::Addresses {
    if (++*asked == 1) return std::vector<std::string>{"192.0.2.1"};
    return fail("host etcd not found: it is broken");
  });
  EXPECT_EQ(addresses.next(10s), "192.0.2.1");
  while (*asked < 3) EXPECT_EQ(addresses.next(10s), "192.0.2.1");

  HostAddresses nowhere("etcd", [](const std::string&) -> HostAddresses::Addresses {
    return fail("host etcd not found: it is broken");
  });
  EXPECT_EQ(nowhere.next(10s).error().message, "host etcd not found: it is broken");
}

TEST(HostAddresses, OfTheSystem) {
  const auto found = HostAddresses::look_up_host("localhost");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->empty());
  const auto none = HostAddresses::look_up_host("no-such-host.invalid");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("host no-such-host.invalid not found"));
}

// "localhost" may be ::1 first, where this server is not.
TEST(HostAddresses, ACallGoesOnWithTheNextAddress) {
  net::ignore_broken_pipes();
  FakeEtcd etcd([](const FakeEtcd::Asked&, httplib::Response& response) {
    response.set_content(R"({"header":{"revision":"5","raft_term":"2"}})", "application/json");
  });
  const std::string url = etcd.url();
  const SystemClock clock;
  const auto client =
      EtcdClient::make({.endpoints = {"http://localhost" + url.substr(url.rfind(':'))}}, clock);
  ASSERT_TRUE(client) << client.error().message;
  const auto answer = (*client)->range({.key = "/a"});
  EXPECT_TRUE(answer) << answer.error().text;
}

}  // namespace
}  // namespace vpfs::control
