#include "proxy/client_identity.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "proxy/config/config.h"
#include "test/proxy/counting_clock.h"

namespace vpfs::proxy {
namespace {

constexpr TimePoint kNow = TimePoint{} + std::chrono::hours(1);

class ClientIdentityTest : public ::testing::Test {
 protected:
  static Config make_config() {
    ConfigErrors errors("client_identity_test");
    Config config = parse_config(
        "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}\n"
        "virtual_pfs: {alice: {weight: 1}, bob: {weight: 1}, named: {weight: 1},\n"
        "              'job-{jobid}': {weight: 1}}\n"
        "rules: [{match: {uid: 1000}, virtual_pfs: alice},\n"
        "        {match: {uid: 1001}, virtual_pfs: bob},\n"
        "        {match: {hint: {jobid: x}}, virtual_pfs: named},\n"
        "        {match: {hint: {jobid: '*'}}, virtual_pfs: 'job-{jobid}'}]\n",
        errors);
    EXPECT_EQ(errors.to_string(), "");
    return config;
  }
  std::unique_ptr<ClientIdentity> new_client(const char* address = "10.0.0.1") {
    return std::make_unique<ClientIdentity>(net::Endpoint(asio::ip::make_address(address), 5),
                                            shared_, dispatcher_, identifier_);
  }
  // The name of the virtual PFS that the request belongs to.
  std::string owner_of(ClientIdentity& client, const IoDescription& io) {
    const auto hint = [this](const std::string&) { return hint_; };
    const Belonging who = client.identify(io, hint, *settings_, now_);
    std::string name;
    dispatcher_.inspect(now_, [&](stage::Stage& stage, TimePoint) {
      name = stage.virtual_pfs()[who.place.id.app].info->name;
    });
    return name;
  }

  const WorkerSettingsPtr settings_ = std::make_shared<const WorkerSettings>(make_config());
  TimePoint now_ = kNow;
  std::optional<std::string_view> hint_;
  CountingClock clock_;
  SharedState shared_{clock_, net::Endpoint(asio::ip::address_v4::loopback(), 1)};
  Dispatcher dispatcher_{settings_, 1, [](std::size_t) {}, kNow};
  Identifier identifier_{dispatcher_, 1};
};

TEST_F(ClientIdentityTest, RulesSeeTheUidAndTheHintsOfARequest) {
  const auto client = new_client();
  EXPECT_EQ(owner_of(*client, {.uid = 1000}), "alice");
  EXPECT_EQ(owner_of(*client, {.uid = 1001}), "bob");
  EXPECT_EQ(owner_of(*client, {.uid = 7}), "default");
  hint_ = "x";
  EXPECT_EQ(owner_of(*client, {.uid = 7}), "named");
  hint_ = "17";
  EXPECT_EQ(owner_of(*client, {.uid = 7}), "job-17");
}

TEST_F(ClientIdentityTest, WhatANodeWritesBackBelongsToTheOnlyUserOfItsFile) {
  const auto client = new_client();
  const auto write = [](std::uint32_t uid, std::string_view file) {
    return IoDescription{.kind = IoKind::write, .uid = uid, .node = 3, .open_file = file};
  };
  EXPECT_EQ(owner_of(*client, write(0, "f")), "default");
  EXPECT_EQ(shared_.counters.write_back_unknown, 1U);
  EXPECT_EQ(owner_of(*client, write(1000, "f")), "alice");
  EXPECT_EQ(owner_of(*client, write(0, "f")), "alice");
  EXPECT_EQ(shared_.counters.write_back_by_file, 1U);
  // Another connection of the node's knows it too, and another node's does not.
  const auto other = new_client();
  EXPECT_EQ(owner_of(*other, write(0, "f")), "alice");
  EXPECT_EQ(owner_of(*other, {.kind = IoKind::read, .uid = 0, .node = 4, .open_file = "f"}),
            "default");
  EXPECT_EQ(shared_.counters.read_unknown, 1U);
  // A peer at another address may say any node, and names of files can be guessed.
  const auto liar = new_client("10.0.0.2");
  EXPECT_EQ(owner_of(*liar, write(0, "f")), "default");
  EXPECT_EQ(owner_of(*liar, write(1001, "f")), "bob");
  EXPECT_EQ(owner_of(*client, write(0, "f")), "alice");
  // Two users leave it open.
  EXPECT_EQ(owner_of(*client, write(1001, "f")), "bob");
  EXPECT_EQ(owner_of(*client, write(0, "f")), "default");
}

// The users of files are kept in bounded memory.
TEST_F(ClientIdentityTest, AFileThatOneConnectionUsesAllTheTimeIsNotForgotten) {
  const auto client = new_client();
  const auto write = [](std::uint32_t uid, std::string_view file) {
    return IoDescription{.kind = IoKind::write, .uid = uid, .node = 3, .open_file = file};
  };
  for (std::uint32_t node = 0; node < 300'000; ++node) {
    shared_.open_files.saw(OpenFileUsers::key(client->address(), node, "flood"), 1001);
    if (node % 10'000 == 0) {
      now_ += std::chrono::seconds(1);
      ASSERT_EQ(owner_of(*client, write(1000, "used")), "alice");
    }
  }
  EXPECT_EQ(owner_of(*client, write(0, "used")), "alice");
}

TEST_F(ClientIdentityTest, AConnectionJoinsItsNodeOnceAndLeavesItAtItsEnd) {
  const auto one = new_client();
  one->join(std::nullopt, std::nullopt);
  EXPECT_EQ(one->id(), stage::kNoClient);
  one->join(7, std::nullopt);
  const stage::ClientId id = one->id();
  ASSERT_NE(id, stage::kNoClient);
  one->join(8, std::nullopt);
  EXPECT_EQ(one->id(), id);

  auto same = new_client();
  same->join(7, std::nullopt);
  EXPECT_EQ(same->id(), id);
  const auto elsewhere = new_client();
  elsewhere->join(7, 9003);
  EXPECT_NE(elsewhere->id(), id) << "connections to another data server count by themselves";
  const auto other = new_client("10.0.0.2");
  other->join(7, std::nullopt);
  EXPECT_NE(other->id(), id);
  EXPECT_EQ(shared_.counters.connections_unknown_node, 0U);
  other->leave();
  EXPECT_EQ(other->id(), stage::kNoClient);
  other->join(kUnknownNode, std::nullopt);
  EXPECT_EQ(shared_.counters.connections_unknown_node, 1U);
}

TEST_F(ClientIdentityTest, NamesThatAreNoneAreCountedAndCountAsDefault) {
  const auto client = new_client();
  hint_ = "two\nlines";
  EXPECT_EQ(owner_of(*client, {.uid = 7}), "default");
  EXPECT_EQ(shared_.counters.names_refused, 1U);
}

}  // namespace
}  // namespace vpfs::proxy
