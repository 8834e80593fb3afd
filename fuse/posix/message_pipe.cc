#include "fuse/posix/message_pipe.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "fuse/buffer.h"
#include "fuse/message.h"
#include "fuse/posix/pipe_size.h"

namespace vpfs::fuse {

std::size_t MessagePipe::largest_write() {
  // Pipes are of 1 MiB unless more is permitted, and then the head has no room beside 1 MiB.
  for (const std::size_t size : {kLargestIo, kLargestIo / 2}) {
    if (MessagePipe().open(size)) return size;
  }
  return 0;
}

bool MessagePipe::open(std::size_t largest_write) {
  if (descriptor_) return true;
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const net::Descriptor out(ends[0]);
  const net::Descriptor in(ends[1]);
  const std::string path = fmt::format("/proc/self/fd/{}", in.get());
  net::Descriptor both(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!both || set_pipe_size(both.get(), 2 * largest_write) / Buffer::kPage <
                   pages_of_message(largest_write)) {
    return false;
  }
  descriptor_ = std::move(both);
  return true;
}

bool MessagePipe::take(std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::read(descriptor_.get(), into.data(), into.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

void MessagePipe::fit(std::size_t bytes) const {
  const std::size_t wanted = pages_of_message(bytes) * Buffer::kPage;
  if (wanted <= kLargestIo)
    (void)::fcntl(descriptor_.get(), F_SETPIPE_SZ, static_cast<int>(wanted));
}

}  // namespace vpfs::fuse
