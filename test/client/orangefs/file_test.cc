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
#include "protocols/orangefs/striping.h"
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
constexpr orangefs::Handle kDatafile = 1000;

// A file on a fake server, of one datafile unless a test says otherwise. `io_` handles its SMALL_IO
// requests; `sizes_` are those of its datafiles.
class FileTest : public testing::Test {
 protected:
  FileTest() : server_(loop_) {
    server_.on_request([this](Peer& peer, const Incoming& incoming) {
      if (std::holds_alternative<orangefs::GetattrRequest>(incoming.request.body)) {
        ++getattrs_;
        return peer.answer(incoming.tag,
                           {.status = 0,
                            .body = orangefs::AttributesResponse{.op = orangefs::Op::getattr,
                                                                 .attributes = attributes_}});
      }
      if (const auto* ask = std::get_if<orangefs::TreeGetFileSizeRequest>(&incoming.request.body)) {
        const std::int64_t size = sizes_.at(ask->handles.at(0) - kDatafile);
        return peer.answer(incoming.tag, {.status = 0,
                                          .body = orangefs::TreeGetFileSizeResponse{
                                              .caller_index = 0, .sizes = {size}, .errors = {0}}});
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
    attributes.capability = {
        .issuer = "S:s0", .fs_id = 7, .op_mask = 6, .handles = {kFile, kDatafile}};
    attributes.distribution = orangefs::SimpleStripe{};
    attributes.datafiles = {kDatafile};
    return attributes;
  }
  // Two datafiles with strips of 1000 bytes.
  void stripe() {
    attributes_.datafiles = {kDatafile, kDatafile + 1};
    attributes_.distribution = orangefs::SimpleStripe{.strip_size = 1000};
  }
  void reopen() { file_ = std::move(run_task(loop_, file_system_->open(kFile)).value()); }
  // Answers reads with bytes of the value 3, at most `most`.
  static void serve_at_most(std::size_t most, Peer& peer, const Incoming& incoming) {
    const auto& body = std::get<orangefs::SmallIoRequest>(incoming.request.body);
    const auto wanted = static_cast<std::size_t>(orangefs::requested_bytes(body).bytes);
    orangefs::SmallIoResponse answer{
        .io_type = body.io_type, .bstream_size = 0, .result_size = 0, .data = {}};
    answer.data.assign(std::min(most, wanted), std::byte{3});
    answer.result_size = static_cast<std::int64_t>(answer.data.size());
    peer.answer(incoming.tag, {.status = 0, .body = answer});
  }
  [[nodiscard]] static orangefs::Handle datafile_of(const Incoming& incoming) {
    return std::get<orangefs::SmallIoRequest>(incoming.request.body).handle;
  }
  [[nodiscard]] std::size_t filled() const {
    return static_cast<std::size_t>(std::ranges::count(memory_, std::byte{3}));
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
  orangefs::Attributes attributes_ = file_attributes();
  std::vector<std::int64_t> sizes_ = {0, 0};
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

// Between the answer of a datafile and the size another client has written behind its end.
TEST_F(FileTest, WhatIsWrittenWhileTheEndIsLookedForIsNotReadAsZeros) {
  stripe();
  reopen();
  sizes_ = {1000, 1000};
  bool written = false;
  io_ = [&](Peer& peer, const Incoming& incoming) {
    const bool late = datafile_of(incoming) == kDatafile + 1;
    serve_at_most(late && !written ? 0 : 1000, peer, incoming);
    if (late) written = true;
  };
  EXPECT_EQ(run_task(loop_, file_->read(0, memory_)).value_or(0), 2000U);
  EXPECT_EQ(filled(), 2000U);
  EXPECT_EQ(requests_.size(), 3U) << "only the part that was short is read again";
}

TEST_F(FileTest, AHoleIsReadAsZerosUpToTheSizeOfTheFile) {
  stripe();
  reopen();
  sizes_ = {1500, 100};
  io_ = [](Peer& peer, const Incoming& incoming) {
    serve_at_most(datafile_of(incoming) == kDatafile ? 1500 : 100, peer, incoming);
  };
  memory_.assign(memory_.size(), std::byte{9});
  EXPECT_EQ(run_task(loop_, file_->read(0, memory_)).value_or(0), 2500U);
  EXPECT_EQ(filled(), 1600U);
  EXPECT_EQ(std::ranges::count(memory_, std::byte{0}), 900);
}

TEST_F(FileTest, TheEndOfAStripedFileIsNotReadTwice) {
  stripe();
  reopen();
  sizes_ = {1000, 500};
  io_ = [this](Peer& peer, const Incoming& incoming) {
    const std::int64_t size = sizes_.at(datafile_of(incoming) - kDatafile);
    serve_at_most(static_cast<std::size_t>(size), peer, incoming);
  };
  EXPECT_EQ(run_task(loop_, file_->read(0, memory_)).value_or(0), 1500U);
  EXPECT_EQ(filled(), 1500U);
  EXPECT_EQ(requests_.size(), 2U);
}

// It was stuffed when it was read, and has got more datafiles and data since.
TEST_F(FileTest, AFileThatIsUnstuffedMeanwhileIsReadAgain) {
  attributes_.mask &= ~orangefs::kAttrMetaUnstuffed;
  attributes_.distribution = orangefs::SimpleStripe{.strip_size = 1000};
  attributes_.stuffed_size = 100;
  reopen();
  io_ = [this](Peer& peer, const Incoming& incoming) {
    if ((attributes_.mask & orangefs::kAttrMetaUnstuffed) == 0) {
      serve_at_most(0, peer, incoming);
      attributes_.mask |= orangefs::kAttrMetaUnstuffed;
      stripe();
      sizes_ = {1000, 1000};
      return;
    }
    serve_at_most(1000, peer, incoming);
  };
  EXPECT_EQ(run_task(loop_, file_->read(0, memory_)).value_or(0), 2000U);
  EXPECT_EQ(filled(), 2000U);
}

TEST_F(FileTest, AnExpiredCapabilityIsRenewedBeforeAStuffedFileGetsMoreDatafiles) {
  attributes_.mask &= ~orangefs::kAttrMetaUnstuffed;
  attributes_.distribution = orangefs::SimpleStripe{.strip_size = 1000};
  reopen();
  getattrs_ = 0;
  int unstuffs = 0;
  io_ = [&](Peer& peer, const Incoming& incoming) {
    const orangefs::Op op = orangefs::op_of(incoming.request.body);
    if (op != orangefs::Op::unstuff) return serve_at_most(4096, peer, incoming);
    if (++unstuffs == 1) {
      return peer.fail(incoming.tag, op, orangefs::status_from_errno(EAGAIN));
    }
    attributes_.mask |= orangefs::kAttrMetaUnstuffed;
    peer.answer(
        incoming.tag,
        {.status = 0, .body = orangefs::AttributesResponse{.op = op, .attributes = attributes_}});
  };
  EXPECT_TRUE(run_task(loop_, file_->write(0, std::span<const std::byte>(memory_))));
  EXPECT_EQ(unstuffs, 2);
  EXPECT_EQ(getattrs_, 1);
}

TEST_F(FileTest, ClosingEndsOperationsUnderWay) {
  io_ = [this](Peer&, const Incoming&) { file_system_->close(); };
  const auto result = run_task(loop_, file_->read(0, memory_));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, std::errc::connection_aborted);
}

}  // namespace
}  // namespace vpfs::client
