// What the proxy believes of a BeeGFS request: whose I/O it is, and for which target.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/servers/proxy_beegfs.h"

namespace vpfs::test {
namespace {

using beegfs::kReadFromMirror;
using beegfs::kReadMirrored;
using beegfs::kWriteMirrored;
using beegfs::kWriteToMirror;
using beegfs::MessageType;

TEST_F(ProxyBeegfs, WhatTheConfiguredServersSendPassesThoughTheDepthIsUsedUp) {
  ProxySettings with_servers = settings();
  with_servers.proxy = "servers: [10.0.0.0/8, 127.0.0.1]";
  ProxyProcess proxy(with_servers);
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink meta = open(proxy, 1, beegfs::NodeType::meta);
  ASSERT_TRUE(meta.client.send(read_request()));
  expect_served(meta, read_request());
  ProxiedLink primary = open_link(proxy, server_);
  const Buffer forwarded = request({.type = MessageType::write_local_file,
                                    .count = 100,
                                    .flags = kWriteMirrored | kWriteToMirror});
  ASSERT_TRUE(primary.client.send(forwarded + pattern(100, 1)));
  ASSERT_EQ(primary.server.receive_bytes(forwarded.size() + 100), forwarded + pattern(100, 1));
  answer(primary, beegfs::write_answer(100));
  EXPECT_EQ(proxy.status()["virtual_pfs"][0]["done_requests"], 0);
  EXPECT_EQ(proxy.status()["counters"]["connections_unknown_node"], 0);
  // A client at a server's address is still a client.
  ProxiedLink client = open(proxy);
  const Buffer claims = request({.flags = kReadFromMirror});
  ASSERT_TRUE(client.client.send(claims));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  answer(first, read_answer(pattern(kSmall, 1)));
  expect_served(client, claims);
}

TEST_F(ProxyBeegfs, WhoeverDoesNotIntroduceItselfWaitsItsTurnAsAnUnknownNode) {
  ProxySettings by_node = settings();
  by_node.proxy = "servers: [10.0.0.0/8]";
  by_node.rules = "[{match: {node: 7}, virtual_pfs: a}, {match: {uid: 1002}, virtual_pfs: b}]";
  ProxyProcess proxy(by_node);
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink silent = open_link(proxy, server_);
  ProxiedLink says_meta = open(proxy, 1, beegfs::NodeType::meta);
  const Buffer plain = request({.node = 7});
  const Buffer mirror = request(
      {.type = MessageType::write_local_file, .count = 10, .user = 1002, .flags = kWriteToMirror});
  ASSERT_TRUE(silent.client.send(plain));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  ASSERT_TRUE(says_meta.client.send(mirror + pattern(10, 1)));
  ASSERT_TRUE(proxy.wait_for_queued(2));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"][0]["queued_requests"], 1)
      << "only node 7 itself can say that it is node 7";
  EXPECT_EQ(now["virtual_pfs"][2]["queued_requests"], 1);
  EXPECT_EQ(now["counters"]["connections_unknown_node"], 2);
  ASSERT_EQ(now["clients"].size(), 2U);
  EXPECT_EQ(now["clients"][1]["client"], "127.0.0.1 unknown node");
  EXPECT_EQ(now["clients"][1]["connections"], 2);
  answer(first, read_answer(pattern(kSmall, 1)));
  // The two are served one after the other, in either order.
  const bool reads_first = [&] {
    while (!silent.server.readable(milliseconds(10))) {
      if (says_meta.server.readable(milliseconds(10))) return false;
    }
    return true;
  }();
  if (reads_first) expect_served(silent, plain);
  ASSERT_EQ(says_meta.server.receive_bytes(mirror.size() + 10), mirror + pattern(10, 1));
  answer(says_meta, beegfs::write_answer(10));
  if (!reads_first) expect_served(silent, plain);
}

TEST_F(ProxyBeegfs, AReloadOfServersCountsForNewConnectionsOnly) {
  ProxySettings changing = settings();
  ProxyProcess proxy(changing);
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink before = open_link(proxy, server_);
  changing.proxy = "servers: 127.0.0.1";
  proxy.reload(changing);
  ASSERT_TRUE(before.client.send(read_request()));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  ProxiedLink after = open_link(proxy, server_);
  ASSERT_TRUE(after.client.send(read_request()));
  expect_served(after, read_request());
  changing.proxy = "";
  proxy.reload(changing);
  ASSERT_TRUE(after.client.send(read_request()));
  expect_served(after, read_request());
  answer(first, read_answer(pattern(kSmall, 1)));
  expect_served(before, read_request());
}

// The request belongs to the target in its body, although its header names another one.
TEST_F(ProxyBeegfs, WhatTheHeaderSaysGivesNoClientAnotherTargetsSlots) {
  ProxySettings per_target = settings();
  per_target.scheduler = "per_target: true";
  per_target.rules = "[{match: {target: 101}, virtual_pfs: a}]";
  ProxyProcess proxy(per_target);
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink liar = open(proxy);
  const Buffer lie = request({.header_target = 102});
  ASSERT_TRUE(liar.client.send(lie));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["targets"].size(), 1U);
  EXPECT_EQ(now["virtual_pfs"][1]["queued_requests"], 1) << "rules see that target too";
  answer(first, read_answer(pattern(kSmall, 1)));
  expect_served(liar, lie);
}

TEST_F(ProxyBeegfs, AMirrorGroupHasASchedulerApartFromTheTargetOfItsNumber) {
  ProxySettings per_target = settings();
  per_target.scheduler = "per_target: true";
  per_target.rules = "[{match: {target: 5}, virtual_pfs: a}, {match: {target: 6}, virtual_pfs: b}]";
  ProxyProcess proxy(per_target);
  ProxiedLink plain = open(proxy);
  occupy(plain);
  ProxiedLink mirrored = open(proxy);
  occupy(mirrored, request({.flags = kReadMirrored, .header_target = 5}));
  ProxiedLink waits = open(proxy);
  const Buffer same_group = request({.flags = kReadMirrored, .header_target = 6});
  ASSERT_TRUE(waits.client.send(same_group));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  const nlohmann::json now = proxy.status();
  ASSERT_EQ(now["targets"].size(), 2U);
  EXPECT_EQ(now["targets"][0]["target"], 101);
  EXPECT_EQ(now["targets"][1]["mirror_group"], 101);
  EXPECT_EQ(now["targets"][1]["queued"], 1);
  EXPECT_EQ(now["virtual_pfs"][2]["oldest_waits_for_mirror_group"], 101);
  EXPECT_EQ(now["virtual_pfs"][1]["outstanding_requests"], 1);
  answer(mirrored, read_answer(pattern(kSmall, 1)));
  expect_served(waits, same_group);
}

TEST_F(ProxyBeegfs, EachTargetHasItsOwnSchedulerWhenAskedFor) {
  ProxySettings per_target = settings();
  per_target.scheduler = "per_target: true";
  ProxyProcess proxy(per_target);
  ProxiedLink first = open(proxy);
  occupy(first);
  ProxiedLink waits = open(proxy);
  ASSERT_TRUE(waits.client.send(read_request()));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  ProxiedLink other = open(proxy);
  const Buffer elsewhere = request({.target = 102});
  ASSERT_TRUE(other.client.send(elsewhere));
  expect_served(other, elsewhere);
  const nlohmann::json now = proxy.status();
  ASSERT_EQ(now["targets"].size(), 2U);
  EXPECT_EQ(now["targets"][0]["target"], 101);
  EXPECT_EQ(now["targets"][0]["queued"], 1);
  EXPECT_EQ(now["virtual_pfs"][1]["oldest_waits_for_target"], 101);
  answer(first, read_answer(pattern(kSmall, 1)));
  expect_served(waits, read_request());
}

TEST_F(ProxyBeegfs, AWriteBackWithoutAUserBelongsToTheOnlyUserOfItsFile) {
  ProxyProcess proxy(settings(4));
  ProxiedLink link = open(proxy);
  const auto write = [&](std::uint32_t user, const std::string& handle) {
    const Buffer message = request(
        {.type = MessageType::write_local_file, .count = 10, .user = user, .handle = handle});
    ASSERT_TRUE(link.client.send(message + pattern(10, 1)));
    ASSERT_EQ(link.server.receive_bytes(message.size() + 10), message + pattern(10, 1))
        << "the request is forwarded unchanged";
    answer(link, beegfs::write_answer(10));
  };
  write(1002, "1#a");
  write(0, "1#a");
  write(0, "2#a");
  write(1001, "1#a");
  write(0, "1#a");
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], 2);
  EXPECT_EQ(now["virtual_pfs"][1]["done_requests"], 1);
  EXPECT_EQ(now["virtual_pfs"][2]["done_requests"], 2);
  EXPECT_EQ(now["counters"]["write_back_by_file"], 1);
  EXPECT_EQ(now["counters"]["write_back_unknown"], 2);
}

// The node's kernel reads ahead for a user with uid 0; root's own reads look the same.
TEST_F(ProxyBeegfs, AReadWithoutAUserBelongsToTheOnlyUserOfItsFile) {
  ProxySettings both = settings(4);
  ProxyProcess proxy(both);
  ProxiedLink link = open(proxy);
  const auto read = [&](std::uint32_t user, const std::string& handle) {
    const Buffer message = request({.user = user, .handle = handle});
    ASSERT_TRUE(link.client.send(message));
    expect_served(link, message);
  };
  read(0, "1#a");
  read(1002, "1#a");
  read(0, "1#a");
  read(0, "2#a");
  read(1001, "1#a");
  read(0, "1#a");
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  nlohmann::json now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], 3);
  EXPECT_EQ(now["virtual_pfs"][1]["done_requests"], 1);
  EXPECT_EQ(now["virtual_pfs"][2]["done_requests"], 2);
  EXPECT_EQ(now["counters"]["read_by_file"], 1);
  EXPECT_EQ(now["counters"]["read_unknown"], 3);
  EXPECT_EQ(now["counters"]["write_back_unknown"], 0);
  both.proxy = "write_back_by_file: false";
  proxy.reload(both);
  read(1002, "3#a");
  read(0, "3#a");
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  now = proxy.status();
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], 4);
  EXPECT_EQ(now["counters"]["read_by_file"], 1);
}

TEST_F(ProxyBeegfs, WhatApplicationsHoldOfANodesConnectionsIsBounded) {
  ProxySettings limited = settings();
  limited.limits = "max_held_per_client: 2";
  ProxyProcess proxy(limited);
  ProxiedLink first = open(proxy, 9);
  occupy(first);
  std::vector<ProxiedLink> links;
  for (int i = 0; i < 4; ++i) links.push_back(open(proxy));
  ASSERT_TRUE(links[0].client.send(request({.offset = 0})));
  ASSERT_TRUE(proxy.wait_for_queued(1));
  ASSERT_TRUE(links[1].client.send(request({.offset = 4096})));
  ASSERT_TRUE(proxy.wait_for_queued(2));
  ASSERT_TRUE(links[2].client.send(request({.offset = 8192})));
  EXPECT_EQ(links[2].client.receive_bytes(8), word(-3));
  // Half of the allowance belongs to another application.
  ASSERT_TRUE(links[3].client.send(read_request(1002)));
  EXPECT_EQ(links[1].client.receive_bytes(8), word(-3));
  ASSERT_TRUE(proxy.wait_for_queued(2));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["counters"]["excess_requests"], 2);
  EXPECT_EQ(now["virtual_pfs"][1]["excess_requests"], 2);
  EXPECT_EQ(now["virtual_pfs"][2]["queued_requests"], 1);
  ASSERT_EQ(now["clients"].size(), 2U);
  EXPECT_EQ(now["clients"][1]["client"], "127.0.0.1 node 7");
  EXPECT_EQ(now["clients"][1]["connections"], 4) << "only connections that have sent a request";
  EXPECT_EQ(now["clients"][1]["max_held"], 2);
  EXPECT_TRUE(proxy.logs("max_held_per_client"));
  answer(first, read_answer(pattern(kSmall, 1)));
}

}  // namespace
}  // namespace vpfs::test
