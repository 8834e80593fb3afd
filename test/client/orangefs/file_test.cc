#include "client/orangefs/file.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "protocols/orangefs/errors.h"
#include "test/support/run_task.h"
#include "test/support/servers/fake_orangefs_server.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;
using test::drain;
using test::FakeOrangefsServer;
using test::run_task;
using Incoming = FakeOrangefsServer::Incoming;
using Peer = FakeOrangefsServer::Peer;

constexpr orangefs::Handle kFile = 50;

// A file of one datafile on a fake server; `io_` handles its SMALL_IO requests.
class FileTest : public testing::Test {
 protected:
  FileTest() : server_(loop_) {
    server_.on_request([this](Peer& peer, const Incoming& incoming) {
      if (std::holds_alternative<orangefs::GetattrRequest>(incoming.request.body)) {
        ++getattrs_;
        return peer.answer(incoming.tag,
                           {.status = 0,
                            .body = orangefs::AttributesResponse{.op = orangefs::Op::getattr,
                                                                 .attributes = file_attributes()}});
      }
      requests_.push_back(incoming);
      io_(peer, incoming);
    });
    const MountAddress address{.scheme = "tcp",
                               .host_port = fmt::format("127.0.0.1:{}", server_.endpoint().port()),
                               .file_system = "fake"};
    SessionOptions options;
    options.caller.jobid = "job42";
    options.job_timeout = 100ms;
    auto mounted = run_task(loop_, FileSystem::mount(address, options, clock_));
    file_system_ = std::move(mounted.value());
    file_ = std::move(run_task(loop_, file_system_->open(kFile)).value());
    getattrs_ = 0;
  }
  ~FileTest() override {
    file_system_->close();
    drain(loop_);
  }

  static orangefs::Attributes file_attributes() {
    orangefs::Attributes attributes;
    attributes.mask = orangefs::kAttrCommonAll | orangefs::kAttrMetaDistribution |
                      orangefs::kAttrMetaDatafiles | orangefs::kAttrMetaUnstuffed |
                      orangefs::kAttrCapability;
    attributes.type = orangefs::ObjectType::metafile;
    attributes.capability = {.issuer = "S:s0", .fs_id = 7, .op_mask = 6, .handles = {kFile, 1000}};
    attributes.distribution = orangefs::SimpleStripe{};
    attributes.datafiles = {1000};
    return attributes;
  }
  static void serve(Peer& peer, const Incoming& incoming) {
    const auto& body = std::get<orangefs::SmallIoRequest>(incoming.request.body);
    orangefs::SmallIoResponse answer{
        .io_type = body.io_type, .bstream_size = 0, .result_size = body.aggregate_size, .data = {}};
    if (body.io_type == orangefs::IoType::read) {
      answer.data.assign(static_cast<std::size_t>(body.aggregate_size), std::byte{3});
    }
    peer.answer(incoming.tag, {.status = 0, .body = answer});
  }

  asio::io_context loop_;
  SystemClock clock_;
  FakeOrangefsServer server_;
  FakeOrangefsServer::OnRequest io_ = serve;
  std::vector<Incoming> requests_;
  int getattrs_ = 0;
  std::unique_ptr<FileSystem> file_system_;
  std::unique_ptr<File> file_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(4096);
};

TEST_F(FileTest, SendsHandleAndJobidHintsWithEveryIo) {
  ASSERT_TRUE(run_task(loop_, file_->read(0, memory_)));
  EXPECT_EQ(memory_[4095], std::byte{3});
  ASSERT_EQ(requests_.size(), 1U);
  const orangefs::Hints& hints = requests_[0].request.hints;
  ASSERT_EQ(hints.size(), 2U);
  EXPECT_EQ(hints[0].type, orangefs::HintType::handle);
  EXPECT_EQ(hints[0].number, kFile);
  EXPECT_EQ(hints[1].key, "jobid");
  EXPECT_EQ(hints[1].text, "job42");
}

TEST_F(FileTest, RepeatsWithANewTagAfterATimeOut) {
  io_ = [this](Peer& peer, const Incoming& incoming) {
    if (requests_.size() > 1) serve(peer, incoming);
  };
  ASSERT_TRUE(run_task(loop_, file_->read(0, memory_)));
  ASSERT_EQ(requests_.size(), 2U);
  EXPECT_NE(requests_[0].tag, requests_[1].tag);
  EXPECT_EQ(requests_[0].request, requests_[1].request);
}

TEST_F(FileTest, ReconnectsAndRepeatsWhenTheConnectionIsLost) {
  io_ = [this](Peer& peer, const Incoming& incoming) {
    if (requests_.size() == 1) return peer.close();
    serve(peer, incoming);
  };
  const std::size_t connections = server_.connections();
  ASSERT_TRUE(run_task(loop_, file_->write(8192, std::span<const std::byte>(memory_))));
  EXPECT_EQ(requests_.size(), 2U);
  EXPECT_EQ(server_.connections(), connections + 1);
}

TEST_F(FileTest, GivesUpAfterTheRetryLimit) {
  io_ = [](Peer& peer, const Incoming&) { peer.close(); };
  const auto result = run_task(loop_, file_->read(0, memory_));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, std::errc::connection_reset);
  EXPECT_EQ(requests_.size(), 3U);
}

TEST_F(FileTest, AnExpiredCapabilityIsRenewedOnce) {
  io_ = [](Peer& peer, const Incoming& incoming) {
    peer.fail(incoming.tag, orangefs::Op::small_io, orangefs::status_from_errno(EAGAIN));
  };
  const auto result = run_task(loop_, file_->read(0, memory_));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code.value(), EAGAIN);
  EXPECT_EQ(requests_.size(), 2U);
  EXPECT_EQ(getattrs_, 1);
}

TEST_F(FileTest, AnErrorOfTheServerIsFinalAndKeepsItsErrno) {
  io_ = [](Peer& peer, const Incoming& incoming) {
    peer.fail(incoming.tag, orangefs::Op::small_io, orangefs::status_from_errno(ENOSPC));
  };
  const auto result = run_task(loop_, file_->write(0, std::span<const std::byte>(memory_)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code.value(), ENOSPC);
  EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(FileTest, AShortWriteIsAnError) {
  io_ = [](Peer& peer, const Incoming& incoming) {
    peer.answer(incoming.tag, {.status = 0,
                               .body = orangefs::SmallIoResponse{.io_type = orangefs::IoType::write,
                                                                 .bstream_size = 0,
                                                                 .result_size = 100,
                                                                 .data = {}}});
  };
  const auto result = run_task(loop_, file_->write(0, std::span<const std::byte>(memory_)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, std::errc::io_error);
}

TEST_F(FileTest, ClosingEndsOperationsUnderWay) {
  io_ = [this](Peer&, const Incoming&) { file_system_->close(); };
  const auto result = run_task(loop_, file_->read(0, memory_));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, std::errc::connection_aborted);
}

}  // namespace
}  // namespace vpfs::client
