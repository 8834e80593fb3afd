#include "client/beegfs/storage_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <spdlog/spdlog.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/result.h"
#include "net/congestion/congestion_control.h"
#include "net/endpoint.h"
#include "protocols/beegfs/message_header.h"

namespace vpfs::client {
namespace {

// Answers on this path are short; longer ones are refused.
constexpr std::size_t kMostAnswer = 4096;
// A small read arrives in one piece.
constexpr std::size_t kInputBuffer = 8192;
constexpr std::size_t kWordSize = 8;

std::vector<std::byte> set_channel_direct() {
  std::vector<std::byte> body;
  ByteWriter(body).i32(0);
  return beegfs::make_message({.type = beegfs::MessageType::set_channel_direct}, body);
}

std::vector<std::byte> authenticate(std::uint64_t secret) {
  std::vector<std::byte> body;
  ByteWriter(body).u64(secret);
  return beegfs::make_message({.type = beegfs::MessageType::authenticate_channel}, body);
}

std::vector<std::byte> peer_info(std::uint32_t node) {
  std::vector<std::byte> body;
  ByteWriter out(body);
  out.u32(static_cast<std::uint32_t>(beegfs::NodeType::client));
  out.u32(node);
  return beegfs::make_message({.type = beegfs::MessageType::peer_info}, body);
}

bool is_transient(int error) {
  return error == EAGAIN || error == EINTR;
}

}  // namespace

StorageConnection::StorageConnection(net::Socket socket)
    : socket_(std::move(socket)), input_(socket_, kInputBuffer) {}

net::Task<Result<std::unique_ptr<StorageConnection>>> StorageConnection::open(
    net::Endpoint server, StorageIntroduction introduction, Duration patience) {
  Result<net::Socket> socket = co_await net::connect(server, patience);
  VPFS_CO_TRY(socket);
  net::choose_local_congestion(socket->native_handle());
  auto connection = std::make_unique<StorageConnection>(std::move(*socket));
  if (!co_await connection->introduce(introduction)) {
    co_return fail("connection to " + net::to_string(server) + " was closed as soon as it opened",
                   std::make_error_code(std::errc::connection_reset));
  }
  co_return connection;
}

net::Task<bool> StorageConnection::introduce(StorageIntroduction introduction) {
  if (introduction.secret) {
    const std::vector<std::byte> message = authenticate(*introduction.secret);
    if (!co_await send(message, {})) co_return false;
  }
  const std::vector<std::byte> direct = set_channel_direct();
  if (!co_await send(direct, {})) co_return false;
  const std::vector<std::byte> peer = peer_info(introduction.node);
  co_return co_await send(peer, {});
}

void StorageConnection::close() {
  std::error_code ignored;
  socket_.close(ignored);
}

net::Task<bool> StorageConnection::writable() {
  const auto [error] = co_await socket_.async_wait(net::Socket::wait_write, net::kUseTask);
  co_return !error;
}

net::Task<bool> StorageConnection::send(std::span<const std::byte> head,
                                        std::span<const std::byte> payload, bool more_follows) {
  while (!head.empty() || !payload.empty()) {
    const auto part = [](std::span<const std::byte> bytes) {
      return iovec{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    };
    std::array<iovec, 2> parts = {part(head), part(payload)};
    msghdr header = {};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more_follows ? MSG_MORE : 0);
    const ssize_t sent = ::sendmsg(socket_.native_handle(), &header, flags);
    if (sent < 0) {
      if (!is_transient(errno) || !co_await writable()) co_return false;
      continue;
    }
    const std::size_t of_head = std::min(head.size(), static_cast<std::size_t>(sent));
    head = head.subspan(of_head);
    payload = payload.subspan(static_cast<std::size_t>(sent) - of_head);
  }
  co_return true;
}

net::Task<bool> StorageConnection::send_file(net::OutputQueue::FilePart part) {
  off_t offset = part.offset;
  while (part.size > 0) {
    const ssize_t sent = ::sendfile(socket_.native_handle(), part.descriptor, &offset, part.size);
    if (sent > 0) {
      part.size -= static_cast<std::size_t>(sent);
    } else if (sent == 0 || !is_transient(errno) || !co_await writable()) {
      co_return false;
    }
  }
  co_return true;
}

net::Task<StorageConnection::Outcome> StorageConnection::write(std::span<const std::byte> message,
                                                               WriteBytes bytes) {
  const bool from_file = bytes.memory.empty() && bytes.file.size > 0;
  if (!co_await send(message, bytes.memory, from_file)) co_return std::nullopt;
  if (from_file && !co_await send_file(bytes.file)) co_return std::nullopt;
  const auto size = from_file ? bytes.file.size : bytes.memory.size();

  using enum beegfs::MessageType;
  const std::span<const std::byte> nothing;
  const std::optional<std::vector<std::byte>> answer = co_await ask(nothing, write_local_file_resp);
  if (!answer) co_return std::nullopt;
  ByteReader in(*answer);
  const std::int64_t result = in.i64();
  if (in.failed() || in.remaining() > 0 || std::cmp_greater(result, size)) {
    spdlog::error("a storage server's answer to a write is malformed");
    co_return std::nullopt;
  }
  co_return result;
}

net::Task<StorageConnection::Outcome> StorageConnection::read(std::span<const std::byte> message,
                                                              ReadRoom room) {
  if (!co_await send(message, {})) co_return std::nullopt;
  std::uint64_t done = 0;
  for (;;) {
    const std::uint64_t left = room.size - done;
    const bool all_fits = left + 2 * kWordSize <= kInputBuffer;
    if (!co_await input_.fill(kWordSize, all_fits ? kInputBuffer : kWordSize)) {
      co_return std::nullopt;
    }
    const std::int64_t word = ByteReader(input_.buffered()).i64();
    input_.consume(kWordSize);
    if (word <= 0) {
      if (!clean()) co_return std::nullopt;
      co_return word < 0 ? word : static_cast<std::int64_t>(done);
    }
    const auto size = static_cast<std::uint64_t>(word);
    if (size > left) {
      spdlog::error("a storage server sent more bytes than requested");
      co_return std::nullopt;
    }
    net::Task<bool> taken = room.memory.empty()
                                ? input_.discard(size)
                                : input_.read(room.memory.subspan(static_cast<std::size_t>(done),
                                                                  static_cast<std::size_t>(size)));
    if (!co_await std::move(taken)) co_return std::nullopt;
    done += size;
  }
}

net::Task<std::optional<std::vector<std::byte>>> StorageConnection::ask(
    std::span<const std::byte> message, beegfs::MessageType answer) {
  if (!co_await send(message, {})) co_return std::nullopt;
  if (!co_await input_.fill(beegfs::kMessageHeaderSize)) co_return std::nullopt;
  const auto header = beegfs::decode_message_header(input_.buffered());
  if (!header || header->type != answer || header->length > kMostAnswer) {
    spdlog::error("a storage server sent another answer than {}", beegfs::name(answer));
    co_return std::nullopt;
  }
  if (!co_await input_.fill(header->length)) co_return std::nullopt;
  const auto body = input_.buffered().first(header->length).subspan(beegfs::kMessageHeaderSize);
  std::optional<std::vector<std::byte>> bytes(std::in_place, body.begin(), body.end());
  input_.consume(header->length);
  if (!clean()) co_return std::nullopt;
  co_return bytes;
}

}  // namespace vpfs::client
