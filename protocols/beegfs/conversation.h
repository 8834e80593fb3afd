#pragma once

#include <algorithm>
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
// and writes are held; other messages pass. All messages from other servers pass too: a mirror's
// primary has already paid for what it forwards. A peer that has not introduced itself as a client
// counts as a server only if its address is trusted: any peer can set the flags of a server. What
// has servers move file data among themselves is refused from clients, and from addresses that are
// known not to be a server's. So are writes of no bytes, which servers never answer.
//
// The server answers requests in order, one at a time. Behind a read or a write, the client's
// stream waits until the answer is complete. A message passes only when it is whole, unless it is
// longer than kMostNeeded bytes.
class BeegfsConversation final : public Conversation {
 public:
  void hold_metadata(bool) override {}
  void set_peer(PeerAddress address) override { peer_ = address; }
  [[nodiscard]] Step next(Sender from, std::span<const std::byte> bytes) override;
  [[nodiscard]] const IoDescription& held() const override { return held_; }
  // BeeGFS has no hints.
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
  // A worker thread stays with a read or write until all of its data have moved.
  [[nodiscard]] bool occupies_server() const override { return true; }
  [[nodiscard]] std::uint64_t data_from_client() const override { return data_from_client_; }
  [[nodiscard]] bool client_sends_data() const override { return sends_data_; }
  void forget(IoKey key) override;
  [[nodiscard]] std::optional<std::uint32_t> serial_client() const override {
    return client_.value_or(kUnknownNode);
  }
  [[nodiscard]] bool at_rest() const override;
  [[nodiscard]] bool may_be_saved() const override {
    return phase_ == Phase::held || (phase_ == Phase::none && data_left_ == 0);
  }
  void save(SavedState& to) override { StateWriter(to).all_of(*this); }
  void restore(const SavedState& from) override {
    StateReader(from).all_of(*this);
    answers_in_doubt_ = std::min(answers_in_doubt_, answers_due_);
  }
  [[nodiscard]] std::optional<ClientTimeout> client_timeout() const override;
  [[nodiscard]] std::string problem() const override { return problem_; }

 private:
  template <typename Archive>
  void archive(Archive& fields) {
    fields("client", client_);
    fields("answers_due", answers_due_);
    fields("answers_in_doubt", answers_in_doubt_);
    fields("data_from_client", data_from_client_);
  }
  friend class vpfs::StateReader;
  friend class vpfs::StateWriter;

  enum class Phase : std::uint8_t {
    none,         // no read or write is under way
    held,         // the proxy keeps its message
    read_answer,  // the server will send length words and data
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

  [[nodiscard]] bool is_scheduled() const { return client_ || peer_ != PeerAddress::server; }
  [[nodiscard]] bool may_move_chunks() const {
    return !client_ && peer_ != PeerAddress::not_servers;
  }

  PeerAddress peer_ = PeerAddress::unknown;
  std::optional<std::uint32_t> client_;  // the node's number, once the peer has introduced itself

  // The read or write under way.
  Phase phase_ = Phase::none;
  IoKey key_ = 0;
  bool is_read_ = false;
  bool scheduled_ = false;   // it was held
  bool reported_ = false;    // a step will tell its end
  std::uint64_t asked_ = 0;  // bytes
  std::uint64_t moved_ = 0;  // of them

  std::uint64_t data_left_ = 0;  // of a write, still to come from the client
  std::uint64_t data_from_client_ = 0;
  bool sends_data_ = false;  // with its last message
  bool discard_data_ = false;
  // Expected answers to other messages; how many of them are uncertain.
  std::uint64_t answers_due_ = 0;
  std::uint64_t answers_in_doubt_ = 0;

  IoDescription held_;
  std::string problem_;
};

}  // namespace vpfs::beegfs
