#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocols/protocol.h"

// What a person wants to read of a recorded connection. Each protocol implements it; vpfs-decode
// feeds it and knows no protocol.
namespace vpfs {

// One message, or one fault.
struct TranscriptEntry {
  Sender from = Sender::client;
  std::uint64_t bytes = 0;  // of the stream that are accounted for; none of a fault
  bool fault = false;       // could not be decoded, or breaks the protocol
  std::string kind;         // what messages are counted by: "REQ IO UNEXP"
  std::string line;         // "UNEXP tag=7 size=264 REQ IO READ ..."
  std::string details;      // every field, when asked for
};

// The story of one connection. After a fault in the framing of a side nothing more is told of it.
class Transcript {
 public:
  virtual ~Transcript() = default;

  // Takes the next bytes of one side's stream and appends the messages that they complete.
  virtual void feed(Sender from, std::span<const std::byte> bytes,
                    std::vector<TranscriptEntry>& entries) = 0;
  // The streams end here: appends a fault for each thing that is incomplete.
  virtual void finish(std::vector<TranscriptEntry>& entries) = 0;
};

// What the first bytes of a stream say about its protocol.
struct Recognition {
  enum class Match : std::uint8_t { no, need_more, yes };
  Match match = Match::no;
  // Set where the bytes can only come from that side.
  std::optional<Sender> from = std::nullopt;
};

}  // namespace vpfs
