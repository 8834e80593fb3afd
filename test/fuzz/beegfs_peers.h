#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "protocols/beegfs/message.h"
#include "test/fuzz/conversation_exchange.h"
#include "test/fuzz/fuzz_input.h"

namespace vpfs::test {

// A client and a storage server of BeeGFS that do what a fuzzer's bytes say: mostly what real ones
// would, so that the conversation gets somewhere, and now and then anything.
class BeegfsPeers {
 public:
  BeegfsPeers(FuzzInput& input, ConversationExchange& exchange)
      : input_(input), exchange_(exchange) {}

  // One choice of the input.
  void act();
  // If neither side has broken the protocol so far, the client sends the data that it owes and the
  // server answers all that it was asked; then every I/O has to have ended.
  void finish();

 private:
  using Buffer = std::vector<std::byte>;

  struct Request {
    beegfs::MessageType type = {};
    std::uint64_t count = 0;  // of a read or write
    std::uint64_t moved = 0;  // of a read
    std::uint64_t end = 0;    // of it and its data in the client's stream
  };

  void send(Sender from, Buffer message);
  // The server's last message of an I/O that has moved so much.
  void end_io(Buffer message, std::uint64_t moved, bool failed);
  void request(beegfs::MessageType type, const beegfs::Body& body);
  void request_io();
  void request_other();
  void introduce();
  void send_data(std::uint64_t most);
  void answer(std::uint64_t most);
  void answer_read(Request& read, std::uint64_t most);
  void fail();
  void decide();
  void refuse();
  void raw();
  [[nodiscard]] bool server_has(const Request& request) const;

  FuzzInput& input_;
  ConversationExchange& exchange_;
  std::deque<Request> requests_;  // whose answers are not complete
  std::uint64_t data_due_ = 0;    // of the client's last write
  std::uint64_t data_sent_ = 0;
  bool honest_ = true;
  bool damage_ = false;  // the next message
};

}  // namespace vpfs::test
