#include "proxy/pump/unread.h"

#include <array>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace vpfs::proxy {

void count_unread(int socket) {
  const int on = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_INQ, &on, sizeof on);
}

ssize_t receive(int socket, void* to, std::size_t size, int flags,
                std::optional<std::size_t>& unread) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
  iovec part = {.iov_base = to, .iov_len = size};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = ::recvmsg(socket, &message, flags);
  unread.reset();
  if (received < 0) return received;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != IPPROTO_TCP || header->cmsg_type != TCP_CM_INQ) {
    return received;
  }
  int count = 0;
  std::memcpy(&count, CMSG_DATA(header), sizeof count);
  if (count >= 0) unread = static_cast<std::size_t>(count);
  return received;
}

}  // namespace vpfs::proxy
