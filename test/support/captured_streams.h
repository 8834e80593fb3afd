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

// The files of one of its folders.
[[nodiscard]] std::vector<std::string> capture_files(std::string_view folder);

struct CapturedStream {
  std::string name;  // file, connection, side
  Sender from = Sender::client;
  std::vector<std::byte> bytes;
  // Which side sent how many bytes, in order, for both streams. Only the client's stream has this.
  std::vector<std::pair<Sender, std::size_t>> order;
};
// The streams of every connection of a file: the client's, then the server's.
[[nodiscard]] std::vector<CapturedStream> captured_streams(const std::string& file);

// The transcript of a connection whose bytes arrive in pieces of at most `piece` bytes.
[[nodiscard]] std::vector<TranscriptEntry> told_in_pieces(Transcript& transcript,
                                                          const CapturedStream& client,
                                                          const CapturedStream& server,
                                                          std::size_t piece);

}  // namespace vpfs::test
