#include "net/input_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <asio/buffer.hpp>
#include <sys/socket.h>

#include "base/check.h"

namespace vpfs::net {

InputStream::InputStream(Socket& socket, std::size_t capacity)
    : socket_(socket), buffer_(capacity) {}

std::span<const std::byte> InputStream::buffered() const {
  return std::span(buffer_).subspan(begin_, end_ - begin_);
}

void InputStream::consume(std::size_t size) {
  VPFS_ASSERT(size <= end_ - begin_);
  begin_ += size;
  if (begin_ == end_) begin_ = end_ = 0;
}

Task<bool> InputStream::fill(std::size_t size, std::size_t most) {
  VPFS_ASSERT(size <= buffer_.size());
  while (end_ - begin_ < size) {
    if (begin_ > 0 && buffer_.size() - begin_ < size) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const std::size_t allowed = std::max(size, most) - (end_ - begin_);
    const auto space =
        asio::buffer(buffer_.data() + end_, std::min(allowed, buffer_.size() - end_));
    const auto [error, received] = co_await socket_.async_read_some(space, kUseTask);
    if (error) co_return false;
    end_ += received;
  }
  co_return true;
}

Task<bool> InputStream::read(std::span<std::byte> into) {
  const std::size_t here = std::min(into.size(), end_ - begin_);
  if (here > 0) {
    std::memcpy(into.data(), buffer_.data() + begin_, here);
    consume(here);
  }
  if (here == into.size()) co_return true;
  // asio's read takes 64 KiB at a time, with a turn of the event loop after each.
  into = into.subspan(here);
  while (!into.empty()) {
    const ssize_t received =
        ::recv(socket_.native_handle(), into.data(), into.size(), MSG_DONTWAIT);
    if (received > 0) {
      into = into.subspan(static_cast<std::size_t>(received));
    } else if (received == 0 || (errno != EAGAIN && errno != EINTR)) {
      co_return false;
    } else {
      const auto [error] = co_await socket_.async_wait(Socket::wait_read, kUseTask);
      if (error) co_return false;
    }
  }
  co_return true;
}

Task<bool> InputStream::discard(std::uint64_t size) {
  const std::size_t here = static_cast<std::size_t>(std::min<std::uint64_t>(size, end_ - begin_));
  consume(here);
  size -= here;
  while (size > 0) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(size, 1U << 30));
    const ssize_t dropped =
        ::recv(socket_.native_handle(), nullptr, most, MSG_TRUNC | MSG_DONTWAIT);
    if (dropped > 0) {
      size -= static_cast<std::uint64_t>(dropped);
    } else if (dropped == 0 || (errno != EAGAIN && errno != EINTR)) {
      co_return false;
    } else {
      const auto [error] = co_await socket_.async_wait(Socket::wait_read, kUseTask);
      if (error) co_return false;
    }
  }
  co_return true;
}

}  // namespace vpfs::net
