#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "test/support/captured_streams.h"

// The captures of real BeeGFS traffic in test/data/beegfs.
namespace vpfs::beegfs::test {

using vpfs::test::captured_streams;
using vpfs::test::CapturedStream;

[[nodiscard]] std::vector<std::string> capture_files();

// A message, header included (data of writes and answers of reads left out).
struct CapturedMessage {
  std::string name;
  std::vector<std::byte> bytes;
};
// All distinct messages of all captures.
[[nodiscard]] const std::vector<CapturedMessage>& captured_messages();

}  // namespace vpfs::beegfs::test
