#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "protocols/orangefs/message.h"
#include "protocols/orangefs/striping.h"
#include "protocols/transcript.h"

namespace vpfs::orangefs {

// Decodes every message in full, pairs messages by tag, and checks the bytes of each flow against
// its request, response and completion.
class OrangefsTranscript final : public Transcript {
 public:
  explicit OrangefsTranscript(bool with_details) : with_details_(with_details) {}

  void feed(Sender from, std::span<const std::byte> bytes,
            std::vector<TranscriptEntry>& entries) override;
  void finish(std::vector<TranscriptEntry>& entries) override;

 private:
  struct Stream {
    std::vector<std::byte> pending;  // the message that is not complete
    std::uint64_t offset = 0;        // of `pending` in the stream
    bool lost = false;
  };
  enum class Phase : std::uint8_t { response, read_flow, write_flow, done };
  struct Operation {
    Phase phase = Phase::response;
    IoRequestBody io;  // of an IO
    TransferSize expected;
    std::int64_t moved = 0;
  };

  std::size_t take_messages(Sender from, std::span<const std::byte> bytes,
                            std::vector<TranscriptEntry>& entries);
  [[nodiscard]] TranscriptEntry message(Sender from, const BmiHeader& header,
                                        std::span<const std::byte> payload);
  void request(const BmiHeader& header, std::span<const std::byte> payload, TranscriptEntry& entry);
  void response(Operation& operation, const BmiHeader& header, std::span<const std::byte> payload,
                TranscriptEntry& entry);
  void completion(Operation& operation, const BmiHeader& header, std::span<const std::byte> payload,
                  TranscriptEntry& entry);
  void expected_message(Operation& operation, const BmiHeader& header,
                        std::span<const std::byte> payload, TranscriptEntry& entry);

  bool with_details_;
  std::array<Stream, 2> streams_;
  std::map<Tag, Operation> operations_;
};

[[nodiscard]] Recognition recognise(std::span<const std::byte> first_bytes);
[[nodiscard]] std::unique_ptr<Transcript> make_transcript(bool with_details);

}  // namespace vpfs::orangefs
