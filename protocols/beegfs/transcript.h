#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "protocols/beegfs/message.h"
#include "protocols/transcript.h"

namespace vpfs::beegfs {

// Decodes every message in full, matches answers to requests by order, and checks data and results
// of reads and writes against the requests. Data are counted, never kept.
class BeegfsTranscript final : public Transcript {
 public:
  explicit BeegfsTranscript(bool with_details) : with_details_(with_details) {}

  void feed(Sender from, std::span<const std::byte> bytes,
            std::vector<TranscriptEntry>& entries) override;
  void finish(std::vector<TranscriptEntry>& entries) override;

 private:
  struct Stream {
    std::vector<std::byte> pending;  // of the message or length word that is not complete
    MessageHeader header;            // of the message in `pending`, once its header is there
    std::uint64_t data = 0;          // raw bytes that come now
    std::uint64_t data_left = 0;     // of them
    std::uint64_t offset = 0;        // in the stream, of the next byte to tell
    bool lost = false;
  };
  // A request whose answer is not complete.
  struct Request {
    MessageType type = {};
    std::int64_t count = 0;  // asked for
    std::int64_t moved = 0;  // of a read: announced by the length words so far
    bool begun = false;      // of a read: a length word has come
  };
  using Entries = std::vector<TranscriptEntry>;

  [[nodiscard]] Stream& stream(Sender from) { return streams_[static_cast<std::size_t>(from)]; }
  // Each consumes at least one byte from the front and returns how many it took.
  std::size_t take(Sender from, std::span<const std::byte> bytes, Entries& entries);
  std::size_t take_data(Sender from, std::span<const std::byte> bytes, Entries& entries);
  std::size_t take_word(std::span<const std::byte> bytes, Entries& entries);
  std::size_t take_message(Sender from, std::span<const std::byte> bytes, Entries& entries);

  void length_word(std::int64_t word, Entries& entries);
  [[nodiscard]] TranscriptEntry whole_message(Sender from);
  void request(const Message& message, TranscriptEntry& entry);
  void damaged_request(MessageType type);
  void answer(const Message& message, TranscriptEntry& entry);
  void tell(const Message& message, TranscriptEntry& entry);
  [[nodiscard]] bool front_is_being_sent();

  void make_fault(TranscriptEntry& entry, std::string_view what);
  void add_fault(Sender from, std::string_view what, Entries& entries);
  void lose(Sender from, std::string_view what, Entries& entries);

  bool with_details_;
  std::array<Stream, 2> streams_;
  std::deque<Request> requests_;  // in the order of their answers
};

[[nodiscard]] Recognition recognise(std::span<const std::byte> first_bytes);
[[nodiscard]] std::unique_ptr<Transcript> make_transcript(bool with_details);

}  // namespace vpfs::beegfs
