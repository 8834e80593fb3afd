#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocols/protocol.h"
#include "protocols/transcript.h"

// The captures of real traffic in test/data.
namespace vpfs::test {

// Of one folder there.
[[nodiscard]] std::vector<std::string> capture_files(std::string_view folder);

struct CapturedStream {
  std::string name;  // file, connection, side
  Sender from = Sender::client;
  std::vector<std::byte> bytes;
  // Of the client's stream only: whose bytes came when, and how many, on both streams.
  std::vector<std::pair<Sender, std::size_t>> order;
};
// Both streams of every connection of a file; the client's, then the server's.
[[nodiscard]] std::vector<CapturedStream> captured_streams(const std::string& file);

// What a transcript tells of a connection whose bytes come in pieces of at most that size.
[[nodiscard]] std::vector<TranscriptEntry> told_in_pieces(Transcript& transcript,
                                                          const CapturedStream& client,
                                                          const CapturedStream& server,
                                                          std::size_t piece);

}  // namespace vpfs::test
