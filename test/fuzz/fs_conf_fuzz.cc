#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocols/orangefs/fs_config.h"

// The fs.conf of a server, as the proxy and mounts read it from GETCONFIG responses.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)vpfs::orangefs::read_fs_config(text);
  return 0;
}
