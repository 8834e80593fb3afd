#pragma once

#include <cstddef>
#include <optional>

#include <sys/types.h>

namespace vpfs::proxy {

// Has the kernel say with each receive() how much is left in the socket, so that no call is needed
// to find out that there is nothing (TCP_INQ). Kernels before 4.18 do not say it.
void count_unread(int socket);

// Like recv(2). `unread`: how many bytes the socket has left at least, those that were only peeked
// at included, or one more if the peer has ended. Nothing if the kernel does not say it.
[[nodiscard]] ssize_t receive(int socket, void* to, std::size_t size, int flags,
                              std::optional<std::size_t>& unread);

}  // namespace vpfs::proxy
