#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_table.h"
#include "protocols/orangefs/bmi_header.h"
#include "protocols/orangefs/io_summary.h"
#include "protocols/protocol.h"

namespace vpfs::orangefs {

// Follows one OrangeFS connection as sections 5 and 6 of docs/wire-orangefs.md ask of a proxy. IO
// and SMALL_IO are held, metadata requests on demand; everything else passes. The state of a tag
// tells flow data from responses.
//
// The tag of a passing request stays known until its answer comes, so answers are never confused.
// After kMostPassing such requests the client's stream waits for answers.
//
// With sound framing, undecodable requests pass, as a server may answer them under their tags, and
// so do answers under unknown tags. Undecodable I/O is a fault, and so are data that belong to no
// write.
//
// The tag of a request that was given up stays known, too: what comes of it later must not answer
// another. After kMostForgotten of them the connection makes no sense any more.
class OrangefsConversation final : public Conversation {
 public:
  static constexpr std::size_t kMostPassing = 1024;
  static constexpr std::size_t kMostForgotten = 2 * kMostPassing;

  // The seed is FlatTable's.
  explicit OrangefsConversation(std::uint64_t seed = 0) : operations_(seed) {}

  void hold_metadata(bool hold) override { hold_metadata_ = hold; }
  [[nodiscard]] Step next(Sender from, std::span<const std::byte> bytes) override;
  [[nodiscard]] const IoDescription& held() const override { return held_; }
  [[nodiscard]] std::uint64_t held_bytes_of(std::uint64_t size) const override;
  [[nodiscard]] std::optional<std::string_view> held_hint(std::string_view name) const override;
  void released(IoKey key) override;
  [[nodiscard]] std::vector<std::byte> refuse(IoKey key) override;
  [[nodiscard]] std::uint64_t moved(IoKey key) override;
  [[nodiscard]] bool awaits_client(IoKey key, bool in_mid_message) override;
  [[nodiscard]] bool is_queued(IoKey key) override;
  [[nodiscard]] bool end_shows(IoKey key) override;
  [[nodiscard]] std::uint64_t data_from_client() const override { return data_from_client_; }
  [[nodiscard]] bool client_sends_data() const override { return sends_data_; }
  void forget(IoKey key) override;
  void ended(IoKey key) override;
  void forget_answers() override;
  [[nodiscard]] std::optional<std::uint32_t> serial_client() const override { return {}; }
  [[nodiscard]] bool at_rest() const override { return passing_ == 0; }
  [[nodiscard]] bool may_be_saved() const override { return true; }
  void save(SavedState& to) override;
  void restore(const SavedState& from) override;
  [[nodiscard]] std::optional<ClientTimeout> client_timeout() const override {
    return client_timeout_;
  }
  [[nodiscard]] std::string problem() const override { return problem_; }

 private:
  // What goes along beside the passing requests.
  template <typename Archive>
  void archive(Archive& fields) {
    fields("data_from_client", data_from_client_);
    fields("uid", uid_);
    fields("several_uids", several_uids_);
  }
  friend class vpfs::StateReader;
  friend class vpfs::StateWriter;

  enum class Phase : std::uint8_t {
    response,     // IO or SMALL_IO: waits for the server's first answer
    read_flow,    // server messages of this tag are file data
    write_flow,   // client messages of this tag are file data, until WRITE_COMPLETION
    metadata,     // a metadata request that was held waits for its answer
    passing,      // a request that was not held waits for its answer
    late_answer,  // a request that was given up: one answer may come
    forgotten,    // likewise, and file data too
  };
  [[nodiscard]] static bool is_late(Phase phase) {
    return phase == Phase::late_answer || phase == Phase::forgotten;
  }
  struct Operation {
    Phase phase = Phase::response;
    Op op = Op::io;
    IoType io_type = IoType::read;
    bool exact = true;     // `expected` is exact; else it is an upper bound of what a read moves
    bool released = true;  // the server has the request, or will have it next
    IoPart part;
    std::unique_ptr<SparseIo> sparse;        // of a sparse read, until its response
    std::uint64_t file = 0;                  // IoDescription::file of an IO
    std::optional<std::uint64_t> file_size;  // from the server's response
    std::int64_t expected = 0;               // bytes of a read flow still to come
    std::int64_t moved = 0;
    bool is_answered = false;  // of a forgotten write: data alone may come
  };

  [[nodiscard]] static std::unique_ptr<SparseIo> sparse_io(const IoSummary& io);
  [[nodiscard]] static TransferSize readable(const Operation& operation, std::int64_t bstream_size);

  [[nodiscard]] Step client_message(const BmiHeader& header, std::span<const std::byte> bytes);
  [[nodiscard]] Step client_data(const BmiHeader& header);
  [[nodiscard]] Step pass(const BmiHeader& header, Op op);
  [[nodiscard]] Step used_again(Tag tag);
  [[nodiscard]] Step hold_metadata_request(const BmiHeader& header, Op op,
                                           std::span<const std::byte> payload);
  [[nodiscard]] Step hold_io(const BmiHeader& header, Op op, std::span<const std::byte> payload);
  [[nodiscard]] Step server_message(const BmiHeader& header, std::span<const std::byte> bytes);
  [[nodiscard]] Step io_response(const BmiHeader& header, Operation& operation,
                                 std::span<const std::byte> bytes);
  [[nodiscard]] Step read_data(const BmiHeader& header, Operation& operation);
  [[nodiscard]] Step write_completion(const BmiHeader& header, const Operation& operation,
                                      std::span<const std::byte> bytes);
  [[nodiscard]] Step metadata_response(const BmiHeader& header, std::span<const std::byte> bytes);
  [[nodiscard]] Step passing_response(const BmiHeader& header, Op op,
                                      std::span<const std::byte> bytes);
  [[nodiscard]] Step finish(const BmiHeader& header, std::int64_t bytes, bool failed);
  [[nodiscard]] Step lost(std::string problem);
  void erase(Tag tag);
  void learn_uid(std::span<const std::byte> payload);
  void learn_config(std::span<const std::byte> payload);

  FlatTable<Operation> operations_;  // by tag
  std::size_t passing_ = 0;          // of them
  std::size_t forgotten_ = 0;        // likewise
  std::uint64_t data_from_client_ = 0;
  Tag data_tag_ = 0;         // of the client's last message of file data
  bool sends_data_ = false;  // with its last message
  IoDescription held_;
  IoPart held_part_;  // where that is an IO
  HintView held_hints_;
  bool hold_metadata_ = false;
  std::optional<std::uint32_t> uid_;
  bool several_uids_ = false;
  std::optional<ClientTimeout> client_timeout_;
  std::string problem_;
};

}  // namespace vpfs::orangefs
