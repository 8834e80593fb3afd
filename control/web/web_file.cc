#include "control/web/web_file.h"

#include <algorithm>
#include <array>
#include <string>

#include <arpa/inet.h>

namespace vpfs::control {

const WebFile* find_web_file(std::string_view path) {
  const std::span<const WebFile> files = web_files();
  const auto found = std::ranges::find(files, path, &WebFile::path);
  return found == files.end() ? nullptr : &*found;
}

bool is_own_host(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return false;
    const std::string address(host.substr(1, end - 1));
    std::array<unsigned char, 16> bytes = {};
    return ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
  }
  const std::string name(host.substr(0, host.find(':')));
  std::array<unsigned char, 4> bytes = {};
  return name == "localhost" || ::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1;
}

}  // namespace vpfs::control
