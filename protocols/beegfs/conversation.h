#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocols/beegfs/file_io.h"
#include "protocols/beegfs/message_header.h"
#include "protocols/protocol.h"

namespace vpfs::beegfs {

// Follows one BeeGFS connection to a storage server as docs/wire-beegfs.md asks of a proxy. Reads
// and writes are held, everything else passes, and so does all that other servers send: what a
// mirror's primary forwards has been paid for there. Whoever has not said that it is a client is
// a server only if it is trusted to be one: what it says of itself, in flags too, anybody can say.
//
// Requests are answered in order and one at a time: behind a read or a write nothing of the client
// is looked at before the answer is complete, and no message is passed on before it is whole, but
// for bodies of more than kMostNeeded bytes.
class BeegfsConversation final : public Conversation {
 public:
  void hold_metadata(bool) override {}
  void trust_peer(bool is_server) override { is_server_ = is_server; }
  [[nodiscard]] Step next(Sender from, std::span<const std::byte> bytes) override;
  [[nodiscard]] const IoDescription& held() const override { return held_; }
  // There are none.
  [[nodiscard]] std::optional<std::string_view> held_hint(std::string_view) const override {
    return {};
  }
  void released(IoKey key) override;
  [[nodiscard]] std::vector<std::byte> refuse(IoKey key) override;
  [[nodiscard]] std::uint64_t moved(IoKey key) override;
  [[nodiscard]] bool awaits_client(IoKey key, bool in_mid_message) override {
    return key == key_ && phase_ == Phase::write_answer && (data_left_ > 0 || in_mid_message);
  }
  [[nodiscard]] bool end_shows(IoKey) override { return true; }
  // A worker reads the data of a write, and sends those of a read, to the end.
  [[nodiscard]] bool occupies_server() const override { return true; }
  [[nodiscard]] std::uint64_t data_from_client() const override { return data_from_client_; }
  [[nodiscard]] bool client_sends_data() const override { return sends_data_; }
  void forget(IoKey key) override;
  [[nodiscard]] std::optional<std::uint32_t> serial_client() const override {
    return client_.value_or(kUnknownNode);
  }
  [[nodiscard]] bool at_rest() const override;
  [[nodiscard]] std::optional<ClientTimeout> client_timeout() const override;
  [[nodiscard]] std::string problem() const override { return problem_; }

 private:
  enum class Phase : std::uint8_t {
    none,         // no read or write is under way
    held,         // its message is with the proxy
    read_answer,  // length words and data are expected of the server
    write_answer,
  };

  [[nodiscard]] Step client_bytes(std::span<const std::byte> bytes);
  [[nodiscard]] Step client_message(const MessageHeader& header, std::span<const std::byte> bytes);
  [[nodiscard]] Step file_io(const MessageHeader& header, std::span<const std::byte> bytes);
  [[nodiscard]] Step take_data();
  [[nodiscard]] Step server_bytes(std::span<const std::byte> bytes);
  [[nodiscard]] Step read_answer(std::span<const std::byte> bytes);
  [[nodiscard]] Step write_answer(const MessageHeader& header, std::span<const std::byte> bytes);
  [[nodiscard]] Step finish(std::uint64_t size, std::uint64_t bytes, bool failed);
  [[nodiscard]] Step lost(std::string problem);

  bool is_server_ = false;               // as trust_peer() says
  std::optional<std::uint32_t> client_;  // once the other side has said that it is one

  // The read or write under way.
  Phase phase_ = Phase::none;
  IoKey key_ = 0;
  bool is_read_ = false;
  bool scheduled_ = false;   // it was held
  bool reported_ = false;    // and its end is of interest
  std::uint64_t asked_ = 0;  // bytes
  std::uint64_t moved_ = 0;  // of them

  std::uint64_t data_left_ = 0;  // of a write, still to come from the client
  std::uint64_t data_from_client_ = 0;
  bool sends_data_ = false;  // with its last message
  bool discard_data_ = false;
  // Of messages of other types: answers to come, and of how many nobody knows whether they do.
  std::uint64_t answers_due_ = 0;
  std::uint64_t answers_in_doubt_ = 0;

  IoDescription held_;
  std::string problem_;
};

}  // namespace vpfs::beegfs
