#include "base/log/journal.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace vpfs {
namespace {

// The size comes first, because the value may have newlines.
std::string field_of(std::string_view name, std::string_view value) {
  std::string field = std::string(name) + "\n";
  for (std::size_t i = 0; i < sizeof(std::uint64_t); ++i) {
    field += static_cast<char>(static_cast<std::uint64_t>(value.size()) >> (8 * i));
  }
  field += value;
  field += '\n';
  return field;
}

Result<void> failure(int number) {
  const std::error_code error(number, std::generic_category());
  return fail("the journal: " + error.message(), error);
}

}  // namespace

Journal::~Journal() {
  if (socket_ >= 0) ::close(socket_);
}

Result<void> Journal::send(std::string_view program, int priority, std::string_view message,
                           const Fields& fields) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) return failure(ENAMETOOLONG);
  path_.copy(address.sun_path, path_.size());
  if (socket_ < 0) socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return failure(errno);

  std::string entry = fmt::format("PRIORITY={}\nSYSLOG_IDENTIFIER={}\n", priority, program);
  for (const auto& [name, value] : fields) {
    if (!value.empty()) entry += field_of(name, value);
  }
  entry += field_of("MESSAGE", message);
  ssize_t sent = 0;
  do {
    sent = ::sendto(socket_, entry.data(), entry.size(), MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? failure(errno) : Result<void>();
}

}  // namespace vpfs
