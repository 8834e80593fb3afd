#include "proxy/handover/stream_counts.h"

#include <array>
#include <cstddef>
#include <cstring>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace vpfs::proxy {
namespace {

constexpr int kAttempts = 16;

// What TCP_INFO says of a connection. The structure of the C library has no counts: these are the
// kernel's places of them.
constexpr std::size_t kAckedAt = 120;     // tcpi_bytes_acked
constexpr std::size_t kReceivedAt = 128;  // tcpi_bytes_received

struct Counted {
  std::uint64_t acked = 0;
  std::uint64_t received = 0;

  bool operator==(const Counted&) const = default;
};

std::optional<Counted> counted(int socket) {
  Counted counts;
  std::array<std::byte, kReceivedAt + sizeof counts.received> info = {};
  socklen_t size = info.size();
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, info.data(), &size) != 0) return std::nullopt;
  const auto state = std::to_integer<int>(info.front());
  if (size < info.size() || state != TCP_ESTABLISHED) return std::nullopt;
  std::memcpy(&counts.acked, info.data() + kAckedAt, sizeof counts.acked);
  std::memcpy(&counts.received, info.data() + kReceivedAt, sizeof counts.received);
  return counts;
}

}  // namespace

// Three calls tell it, and packets may come between them. They change what TCP_INFO says.
std::optional<StreamCounts> stream_counts(int socket) {
  StreamCounts counts;
  socklen_t size = sizeof counts.cookie;
  if (::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &counts.cookie, &size) != 0) return std::nullopt;
  std::optional<Counted> before = counted(socket);
  for (int i = 0; before && i < kAttempts; ++i) {
    int unread = 0;
    int unacknowledged = 0;
    if (::ioctl(socket, SIOCINQ, &unread) != 0 || unread < 0) return std::nullopt;
    if (::ioctl(socket, SIOCOUTQ, &unacknowledged) != 0 || unacknowledged < 0) return std::nullopt;
    const std::optional<Counted> after = counted(socket);
    if (after == before) {
      counts.taken = after->received - static_cast<std::uint64_t>(unread);
      counts.given = after->acked + static_cast<std::uint64_t>(unacknowledged);
      return counts;
    }
    before = after;
  }
  return std::nullopt;
}

void end_stream(int socket) {
  (void)::shutdown(socket, SHUT_RDWR);
}

}  // namespace vpfs::proxy
