// A client's mistakes close its own connection and harm no other.

#include <cerrno>

#include <gtest/gtest.h>

#include "test/dataserver/orangefs/server_fixture.h"
#include "test/support/servers/orangefs_user.h"

namespace vpfs::dataserver {
namespace {

using test::OrangefsUser;
using test::OrangefsWireClient;
using test::RunningFileSystem;

class ServerFaults : public testing::Test {
 protected:
  orangefs::Request noop() const {
    return user_.request(orangefs::EmptyRequest{.op = orangefs::Op::mgmt_noop});
  }
  // The server still serves this connection.
  void expect_unharmed(OrangefsWireClient& client) {
    const auto response = client.call(noop());
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 0);
  }
  static std::vector<std::byte> header(orangefs::BmiMode mode, orangefs::Tag tag,
                                       std::uint64_t size) {
    const auto bytes =
        orangefs::encode(orangefs::BmiHeader{.mode = mode, .tag = tag, .payload_size = size});
    return {bytes.begin(), bytes.end()};
  }

  RunningFileSystem servers_;
  OrangefsUser user_{RunningFileSystem::kId};
  OrangefsWireClient other_{servers_.port()};
  OrangefsWireClient client_{servers_.port()};
};

TEST_F(ServerFaults, GarbageClosesTheConnection) {
  client_.send_bytes(std::vector<std::byte>(100, std::byte{0x5a}));
  EXPECT_TRUE(client_.closed_by_other_side());
  expect_unharmed(other_);
}

TEST_F(ServerFaults, ARequestTooLargeToBeOneClosesTheConnection) {
  client_.send_bytes(header(orangefs::BmiMode::unexpected, 1, orangefs::kMaxEagerSize + 1));
  EXPECT_TRUE(client_.closed_by_other_side());
  expect_unharmed(other_);
}

TEST_F(ServerFaults, DataWithoutAWriteCloseTheConnection) {
  client_.send_data(77, std::vector<std::byte>(1000));
  EXPECT_TRUE(client_.closed_by_other_side());
  expect_unharmed(other_);
}

TEST_F(ServerFaults, HalfAMessageIsForgottenWithItsConnection) {
  {
    OrangefsWireClient half(servers_.port());
    half.send_bytes(header(orangefs::BmiMode::unexpected, 1, 100));
    half.send_bytes(std::vector<std::byte>(50));
  }
  expect_unharmed(other_);
}

TEST_F(ServerFaults, ARequestThatCannotBeDecodedIsAnsweredAndTheConnectionGoesOn) {
  client_.send_bytes(header(orangefs::BmiMode::unexpected, 5, 40));
  client_.send_bytes(std::vector<std::byte>(40, std::byte{1}));
  const auto message = client_.receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->header.tag, 5U);
  const auto response = orangefs::decode_response(message->payload);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, orangefs::status_from_errno(EPROTO));
  EXPECT_EQ(orangefs::op_of(response->body), orangefs::Op::proto_error);
}

TEST_F(ServerFaults, AWriteThatStopsHalfWayLeavesWhatArrivedWhole) {
  const auto root = client_.call(user_.getattr(OrangefsUser::kRoot));
  ASSERT_TRUE(root);
  const auto made =
      client_.call(user_.create(std::get<orangefs::AttributesResponse>(root->body).attributes, 1));
  ASSERT_TRUE(made);
  const orangefs::Handle file = std::get<orangefs::CreateResponse>(made->body).metafile_handle;
  const auto shown = client_.call(user_.getattr(file));
  ASSERT_TRUE(shown);
  const orangefs::Attributes attributes =
      std::get<orangefs::AttributesResponse>(shown->body).attributes;
  {
    OrangefsWireClient writer(servers_.port());
    const orangefs::Tag tag =
        writer.send(user_.io(attributes, file, 0, orangefs::IoType::write, 0, 2 * 262144));
    ASSERT_TRUE(writer.receive_response(tag));
    writer.send_data(tag, std::vector<std::byte>(262144, std::byte{'x'}));
    writer.send_bytes(header(orangefs::BmiMode::rendezvous, tag, 262144));
    writer.send_bytes(std::vector<std::byte>(1000, std::byte{'y'}));
    writer.half_close();
    EXPECT_TRUE(writer.closed_by_other_side());
  }
  const auto size = other_.call(user_.getattr(attributes.datafiles[0]));
  ASSERT_TRUE(size);
  EXPECT_EQ(std::get<orangefs::AttributesResponse>(size->body).attributes.size, 262144);
  expect_unharmed(other_);
}

TEST_F(ServerFaults, AClientThatNeverReadsDoesNotStopOthers) {
  const auto root = client_.call(user_.getattr(OrangefsUser::kRoot));
  const auto made =
      client_.call(user_.create(std::get<orangefs::AttributesResponse>(root->body).attributes, 1));
  const orangefs::Handle file = std::get<orangefs::CreateResponse>(made->body).metafile_handle;
  const auto shown = client_.call(user_.getattr(file));
  const orangefs::Attributes attributes =
      std::get<orangefs::AttributesResponse>(shown->body).attributes;
  ASSERT_TRUE(client_.call(user_.small_write(attributes, file, 0, 64 << 20, "x")));
  for (int i = 0; i < 20; ++i) {
    client_.send(user_.io(attributes, file, 0, orangefs::IoType::read, 0, 64 << 20));
  }
  expect_unharmed(other_);
}

TEST_F(ServerFaults, ConnectionsThatSayNothingCostNothing) {
  std::vector<OrangefsWireClient> silent;
  for (int i = 0; i < 200; ++i) silent.emplace_back(servers_.port());
  expect_unharmed(other_);
  expect_unharmed(silent[100]);
}

}  // namespace
}  // namespace vpfs::dataserver
