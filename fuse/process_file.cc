#include "fuse/process_file.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "net/descriptor.h"

namespace vpfs::fuse {
namespace {

// Most environments fit.
constexpr std::size_t kFirstRead = std::size_t{8} * 1024;

net::Descriptor open_file(std::string_view processes, pid_t process, std::string_view name) {
  const std::string path = fmt::format("{}/{}/{}", processes, process, name);
  return net::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
}

// The kernel may give less than there is: an environment comes a page at a time.
std::size_t fill(int file, std::span<char> buffer) {
  std::size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t got = ::read(file, buffer.data() + size, buffer.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

}  // namespace

std::string_view read_process_file(std::string_view processes, pid_t process, std::string_view name,
                                   std::span<char> buffer) {
  const net::Descriptor file = open_file(processes, process, name);
  return file ? std::string_view(buffer.data(), fill(file.get(), buffer)) : "";
}

std::string read_process_file(std::string_view processes, pid_t process, std::string_view name,
                              std::size_t most) {
  std::string text;
  const net::Descriptor file = open_file(processes, process, name);
  if (!file) return text;
  std::size_t size = 0;
  for (std::size_t room = std::min(kFirstRead, most);; room = std::min(2 * room, most)) {
    text.resize_and_overwrite(room, [&](char* data, std::size_t space) {
      size += fill(file.get(), std::span(data, space).subspan(size));
      return size;
    });
    if (size < room || room == most) return text;
  }
}

}  // namespace vpfs::fuse
