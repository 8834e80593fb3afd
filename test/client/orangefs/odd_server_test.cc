// A server that says what no real one says, and requests that are too large for any.

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/orangefs/file_system.h"
#include "protocols/orangefs/errors.h"
#include "test/client/orangefs/problem.h"
#include "test/support/run_task.h"
#include "test/support/servers/fake_orangefs_server.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;
using orangefs::Op;
using test::drain;
using test::FakeOrangefsServer;
using test::run_task;
using Incoming = FakeOrangefsServer::Incoming;
using Peer = FakeOrangefsServer::Peer;

constexpr orangefs::Handle kOddFile = 50;
constexpr orangefs::Handle kOddDatafile = 1000;

// One file of `attributes_`; `others_` answers all other requests.
class OddServer : public testing::Test {
 protected:
  OddServer() : server_(loop_) {
    attributes_.mask = orangefs::kAttrCommonAll | orangefs::kAttrMetaDistribution |
                       orangefs::kAttrMetaDatafiles | orangefs::kAttrMetaUnstuffed |
                       orangefs::kAttrCapability;
    attributes_.type = orangefs::ObjectType::metafile;
    attributes_.distribution = orangefs::SimpleStripe{};
    set_datafiles(1);
    server_.on_request([this](Peer& peer, const Incoming& incoming) {
      const Op op = orangefs::op_of(incoming.request.body);
      ops_.push_back(op);
      if (op != Op::getattr) return others_(peer, incoming);
      peer.answer(incoming.tag, {.status = 0,
                                 .body = orangefs::AttributesResponse{.op = Op::getattr,
                                                                      .attributes = attributes_}});
    });
    const MountAddress address{.scheme = "tcp",
                               .host_port = fmt::format("127.0.0.1:{}", server_.endpoint().port()),
                               .file_system = "fake"};
    SessionOptions options;
    options.retry_for = 200ms;
    file_system_ = std::move(run_task(loop_, FileSystem::mount(address, options, clock_)).value());
  }
  ~OddServer() override {
    file_system_->close();
    drain(loop_);
  }

  // With a capability as real servers give it.
  void set_datafiles(std::size_t count) {
    attributes_.datafiles.assign(count, kOddDatafile);
    set_handles(count + 1);
  }
  void set_handles(std::size_t count) {
    attributes_.capability = {.issuer = "S:s0",
                              .fs_id = 7,
                              .op_mask = ~0U,
                              .handles = std::vector<orangefs::Handle>(count, kOddFile)};
  }
  static void succeed(Peer& peer, const Incoming& incoming) {
    const Op op = orangefs::op_of(incoming.request.body);
    peer.answer(incoming.tag, {.status = 0, .body = orangefs::EmptyResponse{.op = op}});
  }
  int set_permissions() {
    AttributeChanges changes;
    changes.permissions = 0600;
    return problem(run_task(loop_, file_system_->set_attributes(kOddFile, changes)));
  }
  int set_extended(std::size_t size) {
    return problem(
        run_task(loop_, file_system_->set_extended(kOddFile, "user.x", std::string(size, 'v'))));
  }
  int open() { return problem(run_task(loop_, file_system_->open(kOddFile))); }
  int truncate(std::uint64_t size) {
    return problem(run_task(loop_, file_system_->truncate(kOddFile, size)));
  }

  asio::io_context loop_;
  SystemClock clock_;
  FakeOrangefsServer server_;
  orangefs::Attributes attributes_;
  FakeOrangefsServer::OnRequest others_ = succeed;
  std::vector<Op> ops_;
  std::unique_ptr<FileSystem> file_system_;
};

TEST_F(OddServer, ARequestThatIsTooLargeIsNotSent) {
  const std::size_t connections = server_.connections();
  set_handles(2100);
  EXPECT_EQ(set_permissions(), EMSGSIZE);
  EXPECT_EQ(ops_, std::vector{Op::getattr});
  set_handles(1900);
  EXPECT_EQ(set_permissions(), 0);
  EXPECT_EQ(server_.connections(), connections) << "the others' exchanges go on";
}

TEST_F(OddServer, AnExtendedAttributeThatCouldNotBeReadIsNotSent) {
  EXPECT_EQ(set_extended(65536), E2BIG);
  EXPECT_EQ(set_extended(8193), E2BIG);
  EXPECT_TRUE(ops_.empty());
  EXPECT_EQ(set_extended(8192), 0);
}

// Where positions in the file would overflow, a read would leave its memory as it was, and a write
// would go nowhere.
TEST_F(OddServer, StripsThatAreTooLargeAreAnError) {
  set_datafiles(4);
  for (const std::int64_t strip_size : {std::int64_t{1} << 62, (std::int64_t{1} << 59) + 1}) {
    attributes_.distribution = orangefs::SimpleStripe{.strip_size = strip_size};
    EXPECT_EQ(open(), EIO);
    EXPECT_EQ(truncate(100), EIO);
    EXPECT_EQ(problem(run_task(loop_, file_system_->stat(kOddFile))), EIO);
  }
  for (const Op op : ops_) EXPECT_EQ(op, Op::getattr);
  attributes_.distribution = orangefs::SimpleStripe{.strip_size = std::int64_t{1} << 59};
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(truncate(100), 0);
}

TEST_F(OddServer, ASizeThatNoFileHasDoesNotCutTheFileToNothing) {
  EXPECT_EQ(truncate(std::uint64_t{1} << 63), EFBIG);
  EXPECT_EQ(ops_, std::vector{Op::getattr});
}

TEST_F(OddServer, MoreDatafilesOrHandlesThanRealFilesHaveAreAnError) {
  for (const auto& [datafiles, handles] : {std::pair(5000, 10), {1000, 1100}, {1, 20}}) {
    set_datafiles(static_cast<std::size_t>(datafiles));
    set_handles(static_cast<std::size_t>(handles));
    EXPECT_EQ(open(), EIO) << datafiles;
    EXPECT_EQ(truncate(100), EIO) << datafiles;
  }
  for (const Op op : ops_) EXPECT_EQ(op, Op::getattr);
  set_datafiles(1000);
  EXPECT_EQ(open(), 0);
}

TEST_F(OddServer, MorePartsThanRealObjectsHaveAreAnErrorInAListToo) {
  others_ = [this](Peer& peer, const Incoming& incoming) {
    const auto& asked = std::get<orangefs::ListattrRequest>(incoming.request.body);
    const std::size_t count = asked.handles.size();
    peer.answer(incoming.tag, {.body = orangefs::ListattrResponse{
                                   .errors = std::vector<orangefs::Status>(count, 0),
                                   .attributes = std::vector(count, attributes_)}});
  };
  const std::vector<orangefs::Handle> handles(3, kOddFile);
  const auto problems = [&] {
    ops_.clear();
    for (const Result<Stat>& stat : run_task(loop_, file_system_->stat_all(handles))) {
      EXPECT_EQ(problem(stat), EIO);
    }
    // Those alone are asked once more, and none of their parts.
    EXPECT_EQ(ops_, (std::vector{Op::listattr, Op::getattr, Op::getattr, Op::getattr}));
    EXPECT_EQ(problem(run_task(loop_, file_system_->stat(kOddFile))), EIO);
  };
  set_datafiles(5000);
  problems();
  attributes_.type = orangefs::ObjectType::directory;
  attributes_.mask = orangefs::kAttrCommonAll | orangefs::kAttrDistDir;
  attributes_.distributed.dirdata_handles.assign(5000, kOddDatafile);
  problems();
}

// The capability has a handle for each datafile.
TEST_F(OddServer, AFileOfManyDatafilesIsWrittenWithRequestsThatServersTake) {
  std::size_t received = 0;
  others_ = [](Peer& peer, const Incoming& incoming) {
    peer.answer(incoming.tag, {.status = 0, .body = orangefs::IoResponse{}});
  };
  server_.on_data([&](Peer& peer, orangefs::Tag tag, const std::vector<std::byte>& data) {
    received += data.size();
    const auto size = static_cast<std::int64_t>(data.size());
    peer.answer(tag, {.status = 0, .body = orangefs::WriteCompletionResponse{size}});
  });
  set_datafiles(1400);
  auto file = run_task(loop_, file_system_->open(kOddFile));
  ASSERT_EQ(problem(file), 0);
  const std::vector<std::byte> memory(6000);
  EXPECT_EQ(problem(run_task(loop_, (*file)->write(0, std::span<const std::byte>(memory)))), 0);
  EXPECT_EQ(received, memory.size());
  EXPECT_EQ(ops_, (std::vector{Op::getattr, Op::io}));
  set_datafiles(2100);
  EXPECT_EQ(open(), EMSGSIZE);
}

TEST_F(OddServer, AListOfExtendedAttributesHasAnEnd) {
  others_ = [](Peer& peer, const Incoming& incoming) {
    const auto& ask = std::get<orangefs::ListeattrRequest>(incoming.request.body);
    orangefs::ListeattrResponse list;
    list.token = ask.token + 1;
    list.keys.assign(ask.key_sizes.size(), "user." + std::string(200, 'k'));
    peer.answer(incoming.tag, {.status = 0, .body = list});
  };
  EXPECT_EQ(problem(run_task(loop_, file_system_->list_extended(kOddFile))), E2BIG);
}

}  // namespace
}  // namespace vpfs::client
