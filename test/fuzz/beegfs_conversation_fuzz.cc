#include <cstddef>
#include <cstdint>
#include <memory>

#include "protocols/beegfs/conversation.h"
#include "test/fuzz/beegfs_peers.h"

// A BeeGFS connection in both directions; see ConversationDriver for what has to hold.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs;
  test::FuzzInput input(data, size);
  const std::size_t piece = input.u8() + std::size_t{1};
  const std::size_t choice = input.below(4);
  const PeerAddress peer = choice == 0   ? PeerAddress::server
                           : choice == 1 ? PeerAddress::not_servers
                                         : PeerAddress::unknown;
  test::ConversationExchange exchange([peer] {
    auto conversation = std::make_unique<beegfs::BeegfsConversation>();
    conversation->set_peer(peer);
    return conversation;
  });
  test::BeegfsPeers peers(input, exchange);
  while (!input.empty() && !exchange.driver().closed()) peers.act();
  peers.finish();
  exchange.repeat_in_all_ways(piece);
  return 0;
}
