#include <cstddef>
#include <cstdint>

#include <spdlog/spdlog.h>

#include "test/fuzz/lying_file_system.h"

// The OrangeFS client library against a server that lies: each operation ends, and gives no more
// than was asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs::test;
  spdlog::set_level(spdlog::level::off);
  FuzzInput lies(data, size);
  LyingFileSystem files(lies, LyingRelay::Liar::server);
  files.use();
  return 0;
}
