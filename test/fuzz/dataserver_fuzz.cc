#include <cstddef>
#include <cstdint>

#include <spdlog/spdlog.h>

#include "test/fuzz/lying_file_system.h"
#include "test/fuzz/require.h"

// The requests of a client, with changes, to a server with its file system in memory. Whatever they
// ask for, an honest client is served afterwards.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs::test;
  spdlog::set_level(spdlog::level::off);
  FuzzInput lies(data, size);
  LyingFileSystem files(lies, LyingRelay::Liar::client);
  files.use();
  require(files.serves_others(), "an honest client is not served");
  return 0;
}
