#include "client/orangefs/calls/server_connection.h"

#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/calls/call.h"
#include "client/orangefs/io_part.h"
#include "net/latch.h"
#include "test/support/run_task.h"
#include "test/support/servers/fake_orangefs_server.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;
using test::drain;
using test::FakeOrangefsServer;
using test::run_task;

constexpr Duration kLong = 10s;
constexpr Duration kShort = 40ms;

orangefs::Request statfs(orangefs::FsId id) {
  return {.capability = {}, .hints = {}, .body = orangefs::StatfsRequest{.fs_id = id}};
}
orangefs::Response statfs_answer(orangefs::FsId id) {
  return {.status = 0, .body = orangefs::StatfsResponse{.fs_id = id}};
}
orangefs::FsId id_of(const FakeOrangefsServer::Incoming& incoming) {
  return std::get<orangefs::StatfsRequest>(incoming.request.body).fs_id;
}

class ServerConnectionTest : public testing::Test {
 protected:
  ServerConnectionTest() : server_(loop_) {
    auto opened = run_task(loop_, ServerConnection::open(server_.endpoint(), clock_, kLong));
    connection_ = std::move(opened.value());
  }
  ~ServerConnectionTest() override {
    // The handlers refer to objects on the test's stack.
    server_.on_request({});
    server_.on_data({});
    connection_->close(std::make_error_code(std::errc::connection_aborted));
    drain(loop_);
  }

  [[nodiscard]] IoPart::Plan io(orangefs::IoType type, std::uint64_t size,
                                Duration patience) const {
    return {.type = type, .size = size, .strip_size = 65536, .patience = patience};
  }
  [[nodiscard]] static RequestTemplate io_request(orangefs::IoType type) {
    orangefs::IoRequestBody body;
    body.handle = 1000;
    body.io_type = type;
    body.file_request = orangefs::FileRequest::contiguous_bytes();
    return RequestTemplate({.capability = {}, .hints = {}, .body = body});
  }
  // The server does not take it. Its memory ends before the loop goes on.
  void expect_that_a_large_write_times_out() {
    const RequestTemplate request = io_request(orangefs::IoType::write);
    {
      std::vector<std::byte> memory(64U << 20);
      net::Latch latch(loop_.get_executor());
      IoPart part(io(orangefs::IoType::write, memory.size(), 100ms), {.from = memory}, latch);
      part.begin(connection_, request);
      run_task(loop_, latch.wait());
      EXPECT_EQ(part.failure(), std::errc::timed_out);
    }
    EXPECT_FALSE(connection_->usable());
    drain(loop_);
  }
  // The connection is sound: a STATFS works.
  void expect_sound() {
    server_.on_request(
        [](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
          peer.answer(incoming.tag, statfs_answer(id_of(incoming)));
        });
    net::Latch latch(loop_.get_executor());
    Call call(*connection_, latch);
    call.begin(statfs(9), kLong);
    run_task(loop_, latch.wait());
    ASSERT_TRUE(call.response()) << call.failure().message();
    EXPECT_EQ(std::get<orangefs::StatfsResponse>(call.response()->body).fs_id, 9);
  }

  asio::io_context loop_;
  SystemClock clock_;
  FakeOrangefsServer server_;
  std::shared_ptr<ServerConnection> connection_;
};

TEST_F(ServerConnectionTest, RoutesAnswersThatComeInAnotherOrder) {
  std::vector<FakeOrangefsServer::Incoming> held;
  server_.on_request(
      [&](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
        held.push_back(incoming);
        if (held.size() < 3) return;
        for (auto each = held.rbegin(); each != held.rend(); ++each) {
          peer.answer(each->tag, statfs_answer(id_of(*each)));
        }
      });
  net::Latch latch(loop_.get_executor());
  std::array<Call, 3> calls = {Call(*connection_, latch), Call(*connection_, latch),
                               Call(*connection_, latch)};
  for (int i = 0; i < 3; ++i) calls[static_cast<std::size_t>(i)].begin(statfs(i), kLong);
  run_task(loop_, latch.wait());
  for (int i = 0; i < 3; ++i) {
    auto& response = calls[static_cast<std::size_t>(i)].response();
    ASSERT_TRUE(response);
    EXPECT_EQ(std::get<orangefs::StatfsResponse>(response->body).fs_id, i);
  }
}

TEST_F(ServerConnectionTest, DropsTheAnswerToACallThatGaveUp) {
  std::optional<FakeOrangefsServer::Incoming> held;
  server_.on_request([&](FakeOrangefsServer::Peer&, const FakeOrangefsServer::Incoming& incoming) {
    held = incoming;
  });
  {
    net::Latch latch(loop_.get_executor());
    Call call(*connection_, latch);
    call.begin(statfs(1), kShort);
    run_task(loop_, latch.wait());
    EXPECT_EQ(call.failure(), std::errc::timed_out);
  }
  ASSERT_TRUE(held);
  server_.last_peer().answer(held->tag, statfs_answer(1));
  expect_sound();
}

TEST_F(ServerConnectionTest, DropsTheLateFlowOfAReadThatGaveUp) {
  std::optional<orangefs::Tag> tag;
  server_.on_request([&](FakeOrangefsServer::Peer&, const FakeOrangefsServer::Incoming& incoming) {
    tag = incoming.tag;
  });
  const RequestTemplate request = io_request(orangefs::IoType::read);
  {
    net::Latch latch(loop_.get_executor());
    std::vector<std::byte> memory(300000);
    IoPart part(io(orangefs::IoType::read, memory.size(), kShort), {.into = memory}, latch);
    part.begin(connection_, request);
    run_task(loop_, latch.wait());
    EXPECT_EQ(part.failure(), std::errc::timed_out);
  }
  ASSERT_TRUE(tag);
  FakeOrangefsServer::Peer& peer = server_.last_peer();
  peer.answer(*tag, {.status = 0, .body = orangefs::IoResponse{.bstream_size = 300000}});
  peer.send_data(*tag, 262144);
  peer.send_data(*tag, 300000 - 262144);
  expect_sound();
}

TEST_F(ServerConnectionTest, AReadThatStallsInsideAMessageClosesTheConnection) {
  server_.on_request([](FakeOrangefsServer::Peer& peer,
                        const FakeOrangefsServer::Incoming& incoming) {
    peer.answer(incoming.tag, {.status = 0, .body = orangefs::IoResponse{.bstream_size = 300000}});
    const auto header = orangefs::encode(
        {.mode = orangefs::BmiMode::rendezvous, .tag = incoming.tag, .payload_size = 262144});
    peer.send({header.begin(), header.end()});
  });
  const RequestTemplate request = io_request(orangefs::IoType::read);
  net::Latch latch(loop_.get_executor());
  std::vector<std::byte> memory(300000);
  IoPart part(io(orangefs::IoType::read, memory.size(), kShort), {.into = memory}, latch);
  part.begin(connection_, request);
  run_task(loop_, latch.wait());
  EXPECT_EQ(part.failure(), std::errc::timed_out);
  EXPECT_FALSE(connection_->usable());
}

TEST_F(ServerConnectionTest, ReadsAFlowIntoTheCallersMemory) {
  server_.on_request([](FakeOrangefsServer::Peer& peer,
                        const FakeOrangefsServer::Incoming& incoming) {
    peer.answer(incoming.tag, {.status = 0, .body = orangefs::IoResponse{.bstream_size = 290000}});
    peer.send_data(incoming.tag, 262144, std::byte{1});
    peer.send_data(incoming.tag, 290000 - 262144, std::byte{2});
  });
  const RequestTemplate request = io_request(orangefs::IoType::read);
  net::Latch latch(loop_.get_executor());
  std::vector<std::byte> memory(300000);
  IoPart part(io(orangefs::IoType::read, memory.size(), kLong), {.into = memory}, latch);
  part.begin(connection_, request);
  run_task(loop_, latch.wait());
  EXPECT_TRUE(part.good());
  EXPECT_EQ(part.moved(), 290000U);
  EXPECT_EQ(memory[262143], std::byte{1});
  EXPECT_EQ(memory[262144], std::byte{2});
  EXPECT_EQ(memory[289999], std::byte{2});
  EXPECT_EQ(memory[290000], std::byte{0});
}

TEST_F(ServerConnectionTest, WritesAFlowOfWholeBuffersAfterThePositiveAnswer) {
  server_.on_request(
      [](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
        peer.answer(incoming.tag, {.status = 0, .body = orangefs::IoResponse{}});
      });
  std::vector<std::size_t> sizes;
  std::vector<std::byte> received;
  server_.on_data([&](FakeOrangefsServer::Peer& peer, orangefs::Tag tag, const auto& bytes) {
    sizes.push_back(bytes.size());
    received.insert(received.end(), bytes.begin(), bytes.end());
    if (received.size() < 600000) return;
    peer.answer(tag, {.status = 0, .body = orangefs::WriteCompletionResponse{600000}});
  });
  std::vector<std::byte> memory(600000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 >> 3);
  const RequestTemplate request = io_request(orangefs::IoType::write);
  net::Latch latch(loop_.get_executor());
  IoPart part(io(orangefs::IoType::write, memory.size(), kLong), {.from = memory}, latch);
  part.begin(connection_, request);
  run_task(loop_, latch.wait());
  EXPECT_TRUE(part.good());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{262144, 262144, 75712}));
  EXPECT_EQ(received, memory);
}

TEST_F(ServerConnectionTest, AWriteThatIsNotTakenReleasesItsMemoryByClosing) {
  server_.on_request(
      [](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
        peer.reading = false;
        peer.answer(incoming.tag, {.status = 0, .body = orangefs::IoResponse{}});
      });
  expect_that_a_large_write_times_out();
}

TEST_F(ServerConnectionTest, ACompletionOfAWriteThatIsNotTakenDoesNotEndItsDeadline) {
  server_.on_request(
      [](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
        peer.reading = false;
        peer.answer(incoming.tag, {.status = 0, .body = orangefs::IoResponse{}});
        peer.answer(
            incoming.tag,
            {.status = 0,
             .body = orangefs::WriteCompletionResponse{.total_completed = std::int64_t{64} << 20}});
      });
  expect_that_a_large_write_times_out();
}

TEST_F(ServerConnectionTest, AnErrorCompletionBeforeAllDataAreSentWaitsForThem) {
  std::uint64_t received = 0;
  server_.on_request(
      [](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
        peer.answer(incoming.tag, {.status = 0, .body = orangefs::IoResponse{}});
        peer.fail(incoming.tag, orangefs::Op::write_completion, -1073741877);
      });
  server_.on_data([&](FakeOrangefsServer::Peer&, orangefs::Tag, const auto& bytes) {
    received += bytes.size();
  });
  const std::vector<std::byte> memory(32U << 20);
  const RequestTemplate request = io_request(orangefs::IoType::write);
  net::Latch latch(loop_.get_executor());
  IoPart part(io(orangefs::IoType::write, memory.size(), kLong), {.from = memory}, latch);
  part.begin(connection_, request);
  run_task(loop_, latch.wait());
  EXPECT_EQ(part.status(), -1073741877);
  EXPECT_TRUE(connection_->usable());
  EXPECT_GT(received, memory.size() / 2);
}

TEST_F(ServerConnectionTest, MoreFlowDataThanAskedForClosesTheConnection) {
  server_.on_request([](FakeOrangefsServer::Peer& peer,
                        const FakeOrangefsServer::Incoming& incoming) {
    peer.answer(incoming.tag, {.status = 0, .body = orangefs::IoResponse{.bstream_size = 20000}});
    peer.send_data(incoming.tag, 20001);
  });
  const RequestTemplate request = io_request(orangefs::IoType::read);
  net::Latch latch(loop_.get_executor());
  std::vector<std::byte> memory(300000);
  IoPart part(io(orangefs::IoType::read, memory.size(), kLong), {.into = memory}, latch);
  part.begin(connection_, request);
  run_task(loop_, latch.wait());
  EXPECT_EQ(part.failure(), std::errc::connection_reset);
}

TEST_F(ServerConnectionTest, GarbageAndLostConnectionsFailEverythingOutstanding) {
  std::vector<std::byte> garbage(100, std::byte{0xee});
  for (const bool close_only : {false, true}) {
    auto connection =
        run_task(loop_, ServerConnection::open(server_.endpoint(), clock_, kLong)).value();
    server_.on_request(
        [&](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
          if (id_of(incoming) < 2) return;
          if (!close_only) peer.send(garbage);
          if (close_only) peer.close();
        });
    net::Latch latch(loop_.get_executor());
    Call first(*connection, latch);
    Call second(*connection, latch);
    first.begin(statfs(1), kLong);
    second.begin(statfs(2), kLong);
    run_task(loop_, latch.wait());
    EXPECT_EQ(first.failure(), std::errc::connection_reset);
    EXPECT_EQ(second.failure(), std::errc::connection_reset);
    EXPECT_FALSE(connection->usable());
  }
}

TEST_F(ServerConnectionTest, AMessageCutInTheMiddleFailsItsCall) {
  server_.on_request(
      [](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
        std::vector<std::byte> message = orangefs::response_message(incoming.tag, statfs_answer(1));
        message.resize(message.size() - 5);
        peer.send(message);
        peer.close();
      });
  net::Latch latch(loop_.get_executor());
  Call call(*connection_, latch);
  call.begin(statfs(1), kLong);
  run_task(loop_, latch.wait());
  EXPECT_EQ(call.failure(), std::errc::connection_reset);
}

}  // namespace
}  // namespace vpfs::client
