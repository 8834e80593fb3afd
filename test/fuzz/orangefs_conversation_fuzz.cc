#include <cstddef>
#include <cstdint>
#include <memory>

#include "protocols/orangefs/conversation.h"
#include "test/fuzz/orangefs_peers.h"

// An OrangeFS connection in both directions; see ConversationDriver for what has to hold.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs;
  test::FuzzInput input(data, size);
  const std::size_t piece = input.u8() + std::size_t{1};
  test::ConversationExchange exchange(
      [] { return std::make_unique<orangefs::OrangefsConversation>(); });
  test::OrangefsPeers peers(input, exchange);
  while (!input.empty() && !exchange.driver().closed()) peers.act();
  peers.finish();
  exchange.repeat_in_all_ways(piece);
  return 0;
}
