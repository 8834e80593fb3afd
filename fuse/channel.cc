#include "fuse/channel.h"

#include <array>
#include <cerrno>
#include <system_error>

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/result.h"

namespace vpfs::fuse {

namespace {

// What the kernel says to an answer. ENOENT: it has one already. ENODEV: no process waits any more.
void look_at(ssize_t sent, std::size_t size) {
  if (sent >= 0 || errno == ENOENT || errno == ENODEV) return;
  spdlog::error("/dev/fuse: an answer of {} bytes: {}", size,
                std::generic_category().message(errno));
}

}  // namespace

Channel::Channel(fuse_session* session)
    : session_(session), descriptor_(fuse_session_fd(session)) {}

Channel::~Channel() {
  fuse_session_destroy(session_);
}

std::expected<std::span<std::byte>, Channel::Nothing> Channel::receive(const Buffer& buffer) {
  const std::span<std::byte> room = buffer.message();
  const auto size = receive_by([&] { return ::read(descriptor_, room.data(), room.size()); });
  VPFS_TRY(size);
  return room.first(*size);
}

std::expected<std::size_t, Channel::Nothing> Channel::receive_into(int pipe) {
  return receive_by(
      [&] { return ::splice(descriptor_, nullptr, pipe, nullptr, kWriteHead + kLargestIo, 0); });
}

template <typename Read>
std::expected<std::size_t, Channel::Nothing> Channel::receive_by(Read read) {
  for (;;) {
    const ssize_t size = read();
    if (size >= static_cast<ssize_t>(sizeof(fuse_in_header))) {
      return static_cast<std::size_t>(size);
    }
    if (size >= 0 || errno == ENODEV) return std::unexpected(Nothing::any_more);
    // ENOENT: the request was interrupted before it was read.
    if (errno == ENOENT) continue;
    if (errno == EAGAIN || errno == EINTR) return std::unexpected(Nothing::now);
    if (errno == ENOMEM) {
      // The message stays in the kernel until there is memory for it.
      constexpr int kPause = 10;  // milliseconds
      (void)::poll(nullptr, 0, kPause);
      return std::unexpected(Nothing::now);
    }
    spdlog::error("/dev/fuse: {}", std::generic_category().message(errno));
    return std::unexpected(Nothing::any_more);
  }
}

void Channel::process(std::span<std::byte> message) {
  fuse_buf buffer = {};
  buffer.size = message.size();
  buffer.mem = message.data();
  fuse_session_process_buf(session_, &buffer);
}

void Channel::send(const fuse_out_header& header, std::span<const std::byte> body) {
  std::array<iovec, 2> parts = {
      iovec{.iov_base = const_cast<fuse_out_header*>(&header), .iov_len = sizeof header},  // NOLINT
      iovec{.iov_base = const_cast<std::byte*>(body.data()), .iov_len = body.size()}};     // NOLINT
  look_at(::writev(descriptor_, parts.data(), body.empty() ? 1 : 2), header.len);
}

bool Channel::answer_from(int pipe, std::size_t size) {
  const ssize_t sent = ::splice(pipe, nullptr, descriptor_, nullptr, size, SPLICE_F_MOVE);
  look_at(sent, size);
  return sent == static_cast<ssize_t>(size);
}

void Channel::fail(std::uint64_t unique, int number) {
  send({.len = sizeof(fuse_out_header), .error = -number, .unique = unique}, {});
}

void Channel::answer(std::uint64_t unique, std::span<const std::byte> body) {
  const auto size = static_cast<std::uint32_t>(sizeof(fuse_out_header) + body.size());
  send({.len = size, .error = 0, .unique = unique}, body);
}

void Channel::answer_write(std::uint64_t unique, std::uint32_t size) {
  const fuse_write_out body = {.size = size, .padding = 0};
  answer(unique, std::as_bytes(std::span(&body, 1)));
}

void Channel::attributes_changed(std::uint64_t inode) {
  (void)fuse_lowlevel_notify_inval_inode(session_, inode, -1, 0);
}

void Channel::forget_name(std::uint64_t directory, const std::string& name) {
  (void)fuse_lowlevel_notify_inval_entry(session_, directory, name.c_str(), name.size());
}

}  // namespace vpfs::fuse
