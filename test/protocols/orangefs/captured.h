#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "test/support/captured_streams.h"

// The captures of real OrangeFS traffic in test/data/orangefs.
namespace vpfs::orangefs::test {

using vpfs::test::captured_streams;
using vpfs::test::CapturedStream;

[[nodiscard]] std::vector<std::string> capture_files();

// The payload of a request or response (flow data left out).
struct CapturedPayload {
  std::string name;
  bool is_request = false;
  std::vector<std::byte> bytes;
};
// One payload of all captures for each direction, operation and size.
[[nodiscard]] const std::vector<CapturedPayload>& captured_payloads();

}  // namespace vpfs::orangefs::test
