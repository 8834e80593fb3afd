// Requests about objects of several servers, with doubles in the place of the other servers.

#include <cerrno>
#include <list>

#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "dataserver/orangefs/operations.h"
#include "dataserver/store/memory_bstream_store.h"
#include "dataserver/store/memory_key_value_store.h"
#include "test/support/run_task.h"
#include "test/support/servers/fake_orangefs_server.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Op;
using test::FakeOrangefsServer;

class TreeOperations : public testing::Test {
 protected:
  static constexpr std::uint32_t kServers = 4;

  TreeOperations() {
    config_.id = 7;
    for (FakeOrangefsServer& server : others_) {
      server.on_request(
          [this](FakeOrangefsServer::Peer& peer, const FakeOrangefsServer::Incoming& incoming) {
            asked_.push_back({.peer = &peer, .tag = incoming.tag, .request = incoming.request});
            if (asked_.size() == answer_at_) answer_all();
          });
    }
  }

  static std::list<FakeOrangefsServer> other_servers(asio::io_context& loop) {
    std::list<FakeOrangefsServer> servers;
    while (servers.size() < kServers - 1) servers.emplace_back(loop);
    return servers;
  }
  std::vector<net::Endpoint> endpoints() {
    std::vector<net::Endpoint> all = {net::Endpoint()};
    for (const FakeOrangefsServer& server : others_) all.push_back(server.endpoint());
    return all;
  }
  // One datafile of each server, the first of the last one.
  std::vector<orangefs::Handle> handles() const {
    std::vector<orangefs::Handle> all;
    for (std::uint32_t i = kServers; i > 0; --i)
      all.push_back(ranges_.datafile_handle(0, i - 1, 5));
    return all;
  }
  orangefs::Response sizes() {
    const orangefs::Request request{
        .capability = {},
        .hints = {},
        .body = orangefs::TreeGetFileSizeRequest{.fs_id = 7, .handles = handles()}};
    return test::run_task(loop_, operations_.handle(request));
  }
  void answer_all() {
    for (const Asked& asked : asked_) {
      const auto& part = std::get<orangefs::TreeGetFileSizeRequest>(asked.request.body);
      if (part.handles.front() == refused_) {
        asked.peer->fail(asked.tag, Op::tree_get_file_size, orangefs::status_from_errno(EIO));
        continue;
      }
      orangefs::TreeGetFileSizeResponse answer;
      answer.sizes.assign(answered_sizes_, 100);
      answer.errors.assign(answered_sizes_, 0);
      asked.peer->answer(asked.tag, {.status = 0, .body = answer});
    }
  }

  struct Asked {
    FakeOrangefsServer::Peer* peer;
    orangefs::Tag tag;
    orangefs::Request request;
  };

  asio::io_context loop_;
  std::list<FakeOrangefsServer> others_ = other_servers(loop_);
  std::vector<Asked> asked_;
  std::size_t answer_at_ = kServers - 1;
  std::size_t answered_sizes_ = 1;
  orangefs::Handle refused_ = 0;

  ServerConfig config_;
  SystemClock clock_;
  HandleRanges ranges_{kServers};
  MemoryKeyValueStore entries_;
  MemoryBstreamStore bstreams_{Bytes{kMiB}};
  Datafiles datafiles_{bstreams_};
  Metadata metadata_{entries_, ranges_, 0, [] { return std::chrono::seconds(1'800'000'000); }};
  Peers peers_{loop_, endpoints(), std::chrono::seconds(10)};
  DeviceQueue device_{loop_, clock_, std::nullopt};
  std::string config_text_;
  ServerContext context_{.io = loop_,
                         .config = config_,
                         .self = 0,
                         .config_text = config_text_,
                         .ranges = ranges_,
                         .metadata = metadata_,
                         .bstreams = bstreams_,
                         .datafiles = datafiles_,
                         .peers = peers_,
                         .device = device_};
  Operations operations_{context_};
};

// The doubles answer only once all of them are asked.
TEST_F(TreeOperations, AllServersAreAskedAtOnce) {
  ASSERT_TRUE(bstreams_.truncate(handles().back(), 77));
  const orangefs::Response response = sizes();
  ASSERT_EQ(response.status, 0);
  const auto& body = std::get<orangefs::TreeGetFileSizeResponse>(response.body);
  EXPECT_EQ(body.sizes, (std::vector<std::int64_t>{100, 100, 100, 77}));
  EXPECT_EQ(body.errors, (std::vector<orangefs::Status>(4)));
}

TEST_F(TreeOperations, WhatOneServerRefusesCostsTheOthersNothing) {
  refused_ = handles()[1];
  const orangefs::Response response = sizes();
  const auto& body = std::get<orangefs::TreeGetFileSizeResponse>(response.body);
  EXPECT_EQ(body.sizes, (std::vector<std::int64_t>{100, 0, 100, 0}));
  EXPECT_EQ(body.errors,
            (std::vector<orangefs::Status>{0, orangefs::status_from_errno(EIO), 0, 0}));
}

TEST_F(TreeOperations, AnAnswerAboutOtherObjectsThanAskedForIsAnError) {
  answered_sizes_ = 2;
  const orangefs::Response response = sizes();
  const auto& body = std::get<orangefs::TreeGetFileSizeResponse>(response.body);
  const orangefs::Status error = orangefs::status_from_errno(EPROTO);
  EXPECT_EQ(body.errors, (std::vector<orangefs::Status>{error, error, error, 0}));
}

}  // namespace
}  // namespace vpfs::dataserver
