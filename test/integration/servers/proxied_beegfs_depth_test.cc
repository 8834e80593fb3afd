// BeeGFS clients that lie about themselves, against a real vpfs-proxy.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/servers/beegfs_storage.h"
#include "test/support/servers/proxy_beegfs.h"

namespace vpfs::test {
namespace {

// Whatever clients claim, the depth bounds the requests at the server.
TEST(ProxiedBeegfsDepth, HoldsForWhateverTheHeaderSays) {
  enum class Lie { target, nobody, server, mirror };
  constexpr unsigned kDepth = 4;
  constexpr std::size_t kConnections = 40;
  for (const Lie lie : {Lie::target, Lie::nobody, Lie::server, Lie::mirror}) {
    SCOPED_TRACE(static_cast<int>(lie));
    // The device takes a millisecond per request.
    BeegfsStorage storage(
        {.device = DeviceSettings{.bandwidth = {100 << 20}, .per_request = 1ms, .parallelism = 8}});
    ProxyProcess proxy({.upstream = storage.port(),
                        .protocol = "beegfs",
                        .workers = 2,
                        .depth = kDepth,
                        .scheduler = "per_target: true",
                        .limits = "max_held_per_client: off"});
    const auto type = lie == Lie::server ? beegfs::NodeType::storage : beegfs::NodeType::client;
    std::vector<WirePeer> peers;
    for (std::size_t i = 0; i < kConnections; ++i) {
      peers.push_back(proxy.connect());
      IoOf io;
      if (lie == Lie::target) io.header_target = static_cast<std::uint16_t>(200 + i);
      if (lie == Lie::mirror) io.flags = beegfs::kReadFromMirror;
      if (lie != Lie::nobody) ASSERT_TRUE(peers.back().send(introduction(type, 7)));
      ASSERT_TRUE(peers.back().send(request(io)));
    }
    // The file is empty, so every read gives 0 bytes.
    for (WirePeer& peer : peers) EXPECT_EQ(peer.receive_bytes(8), word(0));
    ASSERT_TRUE(proxy.wait_for_outstanding(0));
    EXPECT_EQ(storage.record().reads, kConnections);
    EXPECT_LE(storage.record().peak_outstanding, kDepth);
    EXPECT_EQ(proxy.status()["virtual_pfs"][0]["done_requests"], kConnections);
  }
}

}  // namespace
}  // namespace vpfs::test
