#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "protocols/protocol.h"

// The captures of real OrangeFS traffic in test/data/pvfs2.
namespace vpfs::pvfs2::test {

[[nodiscard]] std::vector<std::string> capture_files();

struct CapturedStream {
  std::string name;  // file, connection, side
  Sender from = Sender::client;
  std::vector<std::byte> bytes;
  // Of the client's stream only: whose bytes came when, and how many, on both streams.
  std::vector<std::pair<Sender, std::size_t>> order;
};
// Both streams of every connection of a file; the client's, then the server's.
[[nodiscard]] std::vector<CapturedStream> captured_streams(const std::string& file);

// The payload of a request or response (flow data left out).
struct CapturedPayload {
  std::string name;
  bool is_request = false;
  std::vector<std::byte> bytes;
};
// Of the payloads of all captures those that differ in direction, operation or size.
[[nodiscard]] const std::vector<CapturedPayload>& captured_payloads();

}  // namespace vpfs::pvfs2::test
