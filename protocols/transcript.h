#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocols/protocol.h"

// A recorded connection as text for people. Each protocol implements it; vpfs-decode feeds it and
// knows no protocol.
namespace vpfs {

// One message, or one fault.
struct TranscriptEntry {
  Sender from = Sender::client;
  std::uint64_t bytes = 0;  // of the stream that it accounts for; zero for a fault
  bool fault = false;       // could not be decoded, or breaks the protocol
  std::string kind;         // messages are counted by kind: "REQ IO UNEXP"
  std::string line;         // "UNEXP tag=7 size=264 REQ IO READ ..."
  std::string details;      // every field, when asked for
};

// Tells one connection. After a fault in the framing, the rest of that side is not told.
class Transcript {
 public:
  virtual ~Transcript() = default;

  // Takes the next bytes of one side's stream and appends the messages that they complete.
  virtual void feed(Sender from, std::span<const std::byte> bytes,
                    std::vector<TranscriptEntry>& entries) = 0;
  // Ends both streams and appends a fault for everything incomplete.
  virtual void finish(std::vector<TranscriptEntry>& entries) = 0;
};

// Whether the first bytes of a stream belong to a protocol.
struct Recognition {
  enum class Match : std::uint8_t { no, need_more, yes };
  Match match = Match::no;
  // The side that must have sent the bytes, if only one can have.
  std::optional<Sender> from = std::nullopt;
};

}  // namespace vpfs
