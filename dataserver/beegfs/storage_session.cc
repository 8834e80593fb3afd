#include "dataserver/beegfs/storage_session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "dataserver/beegfs/storage_answers.h"

namespace vpfs::dataserver {
namespace {

using beegfs::MessageType;

// A small write arrives in one piece.
constexpr std::size_t kInputBuffer = 8192;
// The buffer of a worker (tuneWorkerBufSize).
constexpr std::size_t kMostMessage = 4 * kMiB;

bool is_io(MessageType type) {
  return type == MessageType::read_local_file || type == MessageType::write_local_file;
}

}  // namespace

StorageSession::StorageSession(StorageContext& context, net::Socket socket)
    : context_(context),
      socket_(std::move(socket)),
      input_(socket_, kInputBuffer),
      deadline_(context.loop),
      pause_(context.loop),
      number_(context.record.connections.size()),
      authenticated_(!context.settings.secret) {
  ++context_.record.open_connections;
  if (context_.settings.record) context_.record.connections.emplace_back();
}

void StorageSession::start(std::function<void()> ended) {
  ended_ = std::move(ended);
  const auto finish = [self = shared_from_this()](const std::exception_ptr& problem) {
    if (problem) spdlog::error("a session of the storage server failed");
    self->close();
    --self->context_.record.open_connections;
    if (self->context_.settings.record) {
      self->context_.record.connections[self->number_].open = false;
    }
    self->ended_();
  };
  asio::co_spawn(context_.loop, serve(), finish);
}

void StorageSession::close() {
  if (std::exchange(closed_, true)) return;
  disarm();
  pause_.cancel();
  std::error_code ignored;
  socket_.close(ignored);
}

bool StorageSession::drop(const char* reason) {
  spdlog::info("connection {} dropped: {}", number_, reason);
  ++context_.record.dropped;
  return false;
}

void StorageSession::arm(Duration patience) {
  deadline_.expires_after(patience);
  deadline_.async_wait([self = shared_from_this(), number = ++armed_](std::error_code error) {
    if (error || self->armed_ != number) return;
    std::error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void StorageSession::disarm() {
  ++armed_;
  deadline_.cancel();
}

net::Task<bool> StorageSession::fill_within(std::size_t size, Duration patience) {
  if (input_.buffered().size() >= size) co_return true;
  arm(patience);
  const bool good = co_await input_.fill(size);
  disarm();
  co_return good;
}

net::Task<bool> StorageSession::read_within(std::span<std::byte> into, Duration patience) {
  const bool here = input_.buffered().size() >= into.size();
  if (!here) arm(patience);
  const bool good = co_await input_.read(into);
  if (!here) disarm();
  co_return good;
}

net::Task<bool> StorageSession::discard_within(std::uint64_t size, Duration patience) {
  arm(patience);
  const bool good = co_await input_.discard(size);
  disarm();
  co_return good;
}

net::Task<> StorageSession::pause_until(TimePoint when) {
  if (closed_) co_return;
  pause_.expires_at(when);
  (void)co_await pause_.async_wait(net::kUseTask);
}

net::Task<bool> StorageSession::stay_silent() {
  while (co_await input_.fill(1)) input_.consume(input_.buffered().size());
  co_return false;
}

net::Task<> StorageSession::serve() {
  while (co_await take_request() && !closed_) {
  }
}

net::Task<std::optional<beegfs::MessageHeader>> StorageSession::take_header() {
  header_in_pieces_ = false;
  for (;;) {
    if (!co_await input_.fill(1)) co_return std::nullopt;
    while (context_.listener_waits && !context_.stopped) co_await context_.listener_free.wait();
    if (context_.stopped) co_return std::nullopt;
    if (input_.buffered().size() >= beegfs::kMessageHeaderSize) break;
    header_in_pieces_ = true;
    context_.listener_waits = true;
    const bool whole =
        co_await fill_within(beegfs::kMessageHeaderSize, context_.settings.header_patience);
    context_.listener_waits = false;
    context_.listener_free.notify_all();
    if (!whole) {
      (void)drop("the rest of a header did not arrive");
      co_return std::nullopt;
    }
  }
  const auto header = beegfs::decode_message_header(input_.buffered());
  if (!header) {
    (void)drop(beegfs::describe(header.error()));
    co_return std::nullopt;
  }
  co_return *header;
}

void StorageSession::note_request(const beegfs::MessageHeader& header) {
  StorageRecord& record = context_.record;
  if (header_in_pieces_) ++record.headers_in_pieces;
  if (is_io(header.type)) {
    record.peak_outstanding = std::max(record.peak_outstanding, ++record.outstanding);
  }
  if (!context_.settings.record) return;
  SeenRequest seen;
  seen.header = header;
  seen.header_in_pieces = header_in_pieces_;
  record.connections[number_].requests.push_back(std::move(seen));
}

void StorageSession::note_io(const beegfs::FileIo& io) {
  if (!context_.settings.record) return;
  SeenRequest& seen = context_.record.connections[number_].requests.back();
  seen.offset = io.offset;
  seen.count = io.count;
  seen.client = io.client;
  seen.file_handle = io.file_handle;
  seen.directory_owner = io.path.owner;
  seen.directory = io.path.directory;
}

net::Task<bool> StorageSession::take_request() {
  const std::optional<beegfs::MessageHeader> header = co_await take_header();
  if (!header) co_return false;
  note_request(*header);
  net::Permits& workers = context_.workers(header->target);
  bool good = false;
  if (co_await workers.take()) {
    good = co_await handle(*header);
    workers.give_back();
  }
  if (is_io(header->type)) --context_.record.outstanding;
  co_return good;
}

net::Task<bool> StorageSession::handle(const beegfs::MessageHeader& header) {
  if (header.length > kMostMessage) co_return drop("a message that is too long");
  message_.resize(header.length);
  if (!co_await read_within(message_, context_.settings.body_patience)) {
    // The worker forgets the connection, and it stays open forever.
    co_return co_await stay_silent();
  }
  if (!is_understood(header)) co_return drop("a message of unknown type or flags");
  if (context_.settings.secret && header.type == MessageType::authenticate_channel) {
    const std::span<const std::byte> message = message_;
    authenticated_ =
        ByteReader(message.subspan(beegfs::kMessageHeaderSize)).u64() == *context_.settings.secret;
  }
  if (!authenticated_) co_return drop("not authenticated");
  if (is_io(header.type)) co_return co_await handle_io(header);
  const std::optional<std::vector<std::byte>> answer = answer_to(context_, header, message_);
  if (!answer) co_return drop("the body of a message is malformed");
  const std::span<const std::byte> bytes(*answer);
  co_return bytes.empty() || co_await send(bytes);
}

net::Task<bool> StorageSession::handle_io(const beegfs::MessageHeader& header) {
  constexpr std::uint16_t kReadMirrored = 4;
  constexpr std::uint16_t kWriteMirrored = 8;
  const auto io = beegfs::decode_file_io(header, message_);
  if (!io) co_return drop(beegfs::describe(io.error()));
  note_io(*io);
  const bool is_write = header.type == MessageType::write_local_file;
  const std::uint16_t mirrored = is_write ? kWriteMirrored : kReadMirrored;
  StorageTarget* const target =
      context_.find_target((header.feature_flags & mirrored) != 0 ? header.target : io->target);
  if (is_write && target == nullptr) co_return drop("a write to an unknown target");
  if (target == nullptr) {
    co_return co_await send_word(-std::to_underlying(beegfs::OpsError::unknown_target));
  }
  if (is_write && io->count == 0) {
    // A worker waits for its data. What comes next is none.
    std::array<std::byte, 1> next;
    (void)co_await read_within(next, context_.settings.data_patience);
    co_return drop("a write of no bytes");
  }
  if (io->offset < 0 || io->offset > std::numeric_limits<std::int64_t>::max() - io->count) {
    co_return drop("bytes that no file can have");
  }
  const auto count = static_cast<std::uint64_t>(io->count);
  const std::optional<StorageFault> fault = context_.take_fault(header.type);
  if (is_write) {
    Write plan{.target = target, .size = count, .result = io->count, .fault = fault};
    co_return co_await write(*io, std::move(plan));
  }
  Read plan = plan_read(*target, *io);
  plan.fault = fault;
  co_return co_await read(std::move(plan));
}

StorageSession::Read StorageSession::plan_read(StorageTarget& target, const beegfs::FileIo& io) {
  const StorageSettings& settings = context_.settings;
  StorageTarget::Handle& handle = target.handle(io.file_handle);
  const std::int64_t end = context_.store.size(handle.bstream).value_or(0);
  const std::int64_t readable = std::clamp<std::int64_t>(end - io.offset, 0, io.count);
  if (handle.next_offset != io.offset) handle.in_sequence = 0;
  const bool early = handle.in_sequence < settings.first_pieces_until.count;
  handle.next_offset = io.offset + readable;
  handle.in_sequence += static_cast<std::uint64_t>(readable);
  return {.target = &target,
          .bstream = handle.bstream,
          .offset = io.offset,
          .asked = static_cast<std::uint64_t>(io.count),
          .readable = static_cast<std::uint64_t>(readable),
          .piece = (early ? settings.first_piece : settings.piece).count,
          .fault = {}};
}

net::Task<> StorageSession::pass_device(StorageTarget& target, std::uint64_t size) {
  if (!target.device()) co_return;
  const TimePoint done = target.device()->finish(context_.clock.now(), Bytes{size}, true);
  co_await pause_until(done);
}

net::Task<bool> StorageSession::write(const beegfs::FileIo& io, Write plan) {
  using Kind = StorageFault::Kind;
  if (plan.fault && plan.fault->kind == Kind::error) plan.result = -plan.fault->value;
  if (!co_await take_data(io, plan)) co_return false;
  co_await pass_device(*plan.target, plan.size);
  if (plan.fault) {
    const TimePoint later = context_.clock.now() + plan.fault->delay;
    if (plan.fault->kind == Kind::silence) co_return co_await stay_silent();
    if (plan.fault->kind == Kind::wrong_type) co_return co_await send_wrong_type();
    if (plan.fault->kind == Kind::delay) co_await pause_until(later);
    if (plan.fault->kind == Kind::too_much) {
      plan.result += static_cast<std::int64_t>(plan.fault->bytes);
    }
  }
  const std::vector<std::byte> answer = beegfs::write_answer(plan.result);
  if (!co_await send(std::span(answer))) co_return false;
  ++context_.record.writes;
  co_return true;
}

net::Task<bool> StorageSession::take_data(const beegfs::FileIo& io, Write& plan) {
  constexpr std::uint64_t kPiece = kMiB;
  const bool cut = plan.fault && plan.fault->kind == StorageFault::Kind::cut_data;
  const std::uint64_t end = cut ? std::min(plan.fault->bytes, plan.size) : plan.size;
  const BstreamId bstream = plan.target->handle(io.file_handle).bstream;
  for (std::uint64_t done = 0; done < end;) {
    const std::uint64_t size = std::min(end - done, kPiece);
    const std::int64_t offset = io.offset + static_cast<std::int64_t>(done);
    done += size;
    if (plan.result >= 0) {
      auto window =
          co_await context_.store.open_window(bstream, offset, static_cast<std::size_t>(size));
      if (window) {
        if (!co_await take_window(std::move(*window))) co_return false;
        continue;
      }
      plan.result = -std::to_underlying(beegfs::OpsError::no_space);
    }
    // After an error the rest is still read.
    if (!co_await discard_within(size, context_.settings.data_patience)) co_return false;
  }
  co_return !cut || drop("as requested, in the middle of a write's data");
}

net::Task<bool> StorageSession::take_window(BstreamStore::Window window) {
  for (const std::span<std::byte> part : window.parts) {
    if (!co_await read_within(part, context_.settings.data_patience)) {
      context_.store.abandon(std::move(window));
      co_return drop("the rest of a write's data did not arrive");
    }
  }
  (void)co_await context_.store.commit(std::move(window));
  co_return true;
}

net::Task<bool> StorageSession::read(Read plan) {
  using Kind = StorageFault::Kind;
  co_await pass_device(*plan.target, plan.readable);
  std::uint64_t end = plan.readable;
  if (plan.fault) {
    const TimePoint later = context_.clock.now() + plan.fault->delay;
    if (plan.fault->kind == Kind::silence) co_return co_await stay_silent();
    if (plan.fault->kind == Kind::wrong_type) co_return co_await send_wrong_type();
    if (plan.fault->kind == Kind::delay) co_await pause_until(later);
    if (plan.fault->kind == Kind::too_much) end = plan.asked + plan.fault->bytes;
    if (plan.fault->kind == Kind::error) end = std::min(end, plan.fault->bytes);
  }
  const bool failing = plan.fault && plan.fault->kind == Kind::error;
  plan.readable = end;
  if (plan.fault && plan.fault->kind == Kind::half_word) {
    co_return co_await send_half_word(plan, std::min(end, plan.piece));
  }
  for (std::uint64_t done = 0; done < end;) {
    const std::uint64_t size = std::min(end - done, plan.piece);
    if (failing && done + size == end) {
      // The error's word takes the place of the closing word.
      plan.readable = end + 1;
    }
    if (!co_await send_piece(plan, done, size)) co_return false;
    done += size;
  }
  if (failing && !co_await send_word(-plan.fault->value)) co_return false;
  if (end == 0 && !failing && !co_await send_word(0)) co_return false;
  ++context_.record.reads;
  co_return true;
}

// The length, the data, and with the last piece the closing 0.
net::Task<bool> StorageSession::send_piece(const Read& plan, std::uint64_t done,
                                           std::uint64_t size) {
  const bool cut = plan.fault && plan.fault->kind == StorageFault::Kind::cut_answer &&
                   plan.fault->bytes < done + size;
  std::vector<std::byte> words;
  ByteWriter out(words);
  out.u64(size);
  out.u64(0);
  const std::uint64_t really = cut ? plan.fault->bytes - std::min(plan.fault->bytes, done) : size;
  const std::int64_t offset = plan.offset + static_cast<std::int64_t>(done);
  const auto data =
      co_await context_.store.read(plan.bstream, offset, static_cast<std::size_t>(really));
  std::vector<iovec> parts;
  const auto add = [&parts](std::span<const std::byte> bytes) {
    parts.push_back({.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()});
  };
  add(std::span(words).first(8));
  for (const auto& part : *data) add(part.bytes);
  if (!cut && done + size == plan.readable) add(std::span(words).subspan(8));
  if (!co_await send(std::span(parts))) co_return false;
  co_return !cut || drop("as requested, in the middle of an answer");
}

net::Task<bool> StorageSession::send_word(std::int64_t word) {
  std::vector<std::byte> bytes;
  ByteWriter(bytes).i64(word);
  co_return co_await send(std::span<const std::byte>(bytes));
}

net::Task<bool> StorageSession::send_half_word(const Read& plan, std::uint64_t first_piece) {
  std::vector<std::byte> answer;
  ByteWriter out(answer);
  out.u64(first_piece);
  const auto data = co_await context_.store.read(plan.bstream, plan.offset,
                                                 static_cast<std::size_t>(first_piece));
  for (const auto& part : *data) out.bytes(part.bytes);
  if (first_piece > 0) out.u64(0);
  const std::span<const std::byte> whole(answer);
  const std::size_t half = std::min<std::size_t>(plan.fault->bytes, whole.size());
  if (!co_await send(whole.first(half))) co_return false;
  co_await pause_until(context_.clock.now() + plan.fault->delay);
  co_return co_await send(whole.subspan(half));
}

net::Task<bool> StorageSession::send_wrong_type() {
  const std::string text = "as told";
  std::vector<std::byte> body;
  ByteWriter out(body);
  out.i32(1);
  out.u32(static_cast<std::uint32_t>(text.size()));
  out.text(text);
  out.u8(0);
  const std::vector<std::byte> answer =
      beegfs::make_message({.type = MessageType::generic_response}, body);
  co_return co_await send(std::span(answer));
}

net::Task<bool> StorageSession::send(std::span<const std::byte> bytes) {
  iovec one = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  co_return co_await send(std::span(&one, 1));
}

net::Task<bool> StorageSession::send(std::span<iovec> parts) {
  while (!parts.empty() && !closed_) {
    msghdr header = {};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    ssize_t sent = ::sendmsg(socket_.native_handle(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) co_return false;
      const auto [error] = co_await socket_.async_wait(net::Socket::wait_write, net::kUseTask);
      if (error) co_return false;
      continue;
    }
    while (!parts.empty() && std::cmp_greater_equal(sent, parts.front().iov_len)) {
      sent -= static_cast<ssize_t>(parts.front().iov_len);
      parts = parts.subspan(1);
    }
    if (!parts.empty()) {
      parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + sent;
      parts.front().iov_len -= static_cast<std::size_t>(sent);
    }
  }
  co_return !closed_;
}

}  // namespace vpfs::dataserver
