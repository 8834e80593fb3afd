#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocols/orangefs/message.h"
#include "test/fuzz/conversation_exchange.h"
#include "test/fuzz/fuzz_input.h"

namespace vpfs::test {

// A client and a server of OrangeFS that do what a fuzzer's bytes say: mostly what real ones would,
// so that the conversation gets somewhere, and now and then anything.
class OrangefsPeers {
 public:
  OrangefsPeers(FuzzInput& input, ConversationExchange& exchange)
      : input_(input), exchange_(exchange) {}

  // One choice of the input.
  void act();
  // If neither side has broken the protocol so far, the server answers all that it was asked; then
  // every I/O has to have ended.
  void finish();

 private:
  using Buffer = std::vector<std::byte>;

  enum class Phase { answer, read_data, write_data, over };
  struct Operation {
    orangefs::Tag tag = 0;
    orangefs::Op op = orangefs::Op::io;
    bool is_read = false;
    std::int64_t offset = 0;
    std::int64_t size = 0;
    Phase phase = Phase::answer;
    std::uint64_t end = 0;  // of its request in the client's stream
    std::int64_t left = 0;  // bytes of file data still to be sent
    std::int64_t moved = 0;
  };

  void send(Sender from, Buffer message);
  // The server's last message of an operation that has moved so much file data.
  void end(Operation& operation, Buffer message, std::int64_t moved, bool failed);
  void add(Operation operation, const orangefs::Request& request);
  void request_io();
  void request_small_io();
  void request_other();
  void request_many();
  void send_data();
  void send_data(Operation& write, std::int64_t most);
  void answer();
  void answer(Operation& operation, std::int64_t file_size);
  void answer_io(Operation& operation, std::int64_t file_size);
  void fail();
  void decide();
  void raw();

  // Nothing while there is none.
  [[nodiscard]] Operation* any_operation();
  [[nodiscard]] bool server_has(const Operation& operation) const;
  [[nodiscard]] std::int64_t any_piece();
  [[nodiscard]] orangefs::Tag new_tag();
  [[nodiscard]] Buffer data_message(orangefs::Tag tag, std::size_t size) const;

  FuzzInput& input_;
  ConversationExchange& exchange_;
  std::vector<Operation> operations_;
  orangefs::Tag last_tag_ = 0;
  std::uint64_t data_sent_ = 0;  // of the writes that the session follows
  bool honest_ = true;
  bool has_forgotten_ = false;  // the session has given some up
  bool damage_ = false;         // the next message
};

}  // namespace vpfs::test
