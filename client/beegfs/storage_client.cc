#include "client/beegfs/storage_client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/result.h"
#include "client/beegfs/ops_error_code.h"
#include "net/endpoint.h"

namespace vpfs::client {
namespace {

using beegfs::MessageType;
using beegfs::OpsError;

constexpr std::uint32_t kReadAndWrite = 4;  // of the access flags

Error error_of(MessageType type, OpsError error) {
  const std::error_code code = error_code_of(error);
  return {.message = fmt::format("{}: {}", beegfs::name(type), code.message()), .code = code};
}

Error closed() {
  return {.message = "the mount is closed",
          .code = std::make_error_code(std::errc::connection_aborted)};
}

// `outcome` is negative.
OpsError error_in(std::int64_t outcome) {
  return OpsError{static_cast<std::int32_t>(-outcome)};
}

std::string handle_of(const ChunkFile& file) {
  return fmt::format("{:X}#{}", file.session, file.entry);
}

void write_text(ByteWriter& out, std::string_view text) {
  constexpr std::size_t kAlignment = 4;
  out.u32(static_cast<std::uint32_t>(text.size()));
  out.text(text);
  out.zeros(kAlignment - text.size() % kAlignment);
}

void write_path(ByteWriter& out, const ChunkFile& file) {
  out.u32(beegfs::PathInfo::kHasOrigin);
  out.u32(file.directory_owner);
  write_text(out, file.directory);
}

}  // namespace

StorageClient::StorageClient(asio::any_io_executor executor, StorageClientOptions options,
                             const Clock& clock)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      clock_(clock),
      free_connections_(executor_, options_.connections),
      connections_(options_.connections),
      closing_(executor_),
      watch_(executor_),
      alive_(std::make_shared<const bool>(true)) {
  for (std::size_t i = connections_.size(); i > 0; --i) idle_.push_back(i - 1);
}

StorageClient::~StorageClient() {
  close();
}

void StorageClient::close() {
  if (std::exchange(closed_, true)) return;
  watch_.cancel();
  free_connections_.close();
  drop_idle();
  for (PooledConnection& pooled : connections_) {
    if (pooled.connection) pooled.connection->close();
  }
  closing_.notify_all();
}

void StorageClient::drop(PooledConnection& pooled) {
  if (!pooled.connection) return;
  pooled.connection = nullptr;
  ++counters_.lost;
}

void StorageClient::drop_idle() {
  for (PooledConnection& pooled : connections_) {
    if (!pooled.busy) drop(pooled);
  }
}

void StorageClient::watch_deadlines() {
  // Deadlines are coarse: an exchange ends at most an eighth of its patience late.
  watch_.expires_after(std::max<Duration>(options_.timeout / 8, std::chrono::milliseconds(1)));
  watch_.async_wait([this, alive = std::weak_ptr(alive_)](std::error_code error) {
    if (error || alive.expired() || closed_) return;
    const TimePoint now = clock_.now();
    for (PooledConnection& pooled : connections_) {
      if (pooled.busy && pooled.connection && pooled.connection->deadline() <= now) {
        pooled.connection->close();
      }
    }
    watch_deadlines();
  });
}

net::Task<StorageClient::Outcome> StorageClient::exchange(StorageConnection& connection,
                                                          const Operation& operation) {
  switch (operation.type) {
    case MessageType::read_local_file:
      co_return co_await connection.read(operation.message, operation.into);
    case MessageType::write_local_file:
      co_return co_await connection.write(operation.message, operation.from);
    default:
      break;
  }
  const std::optional<std::vector<std::byte>> answer =
      co_await connection.ask(operation.message, operation.answer);
  if (!answer) co_return std::nullopt;
  ByteReader in(*answer);
  const std::int64_t result = operation.long_result ? in.i64() : in.i32();
  if (in.failed()) co_return std::nullopt;
  co_return result > 0 ? -result : result;
}

net::Task<StorageClient::Outcome> StorageClient::try_once(const Operation& operation) {
  const std::size_t index = idle_.back();
  idle_.pop_back();
  PooledConnection& pooled = connections_[index];
  pooled.busy = true;
  if (!pooled.connection) {
    const StorageIntroduction introduction{.node = options_.node, .secret = options_.secret};
    auto opened =
        co_await StorageConnection::open(options_.server, introduction, options_.connect_patience);
    if (opened) {
      if (counters_.opened++ == 0) watch_deadlines();
      pooled.connection = std::move(*opened);
    } else {
      spdlog::debug("{}", opened.error().message);
    }
  }
  Outcome outcome;
  if (pooled.connection && !closed_) {
    pooled.connection->set_deadline(clock_.now() + options_.timeout);
    outcome = co_await exchange(*pooled.connection, operation);
  }
  // No error has such a number.
  if (outcome && *outcome < -std::int64_t{INT32_MAX}) outcome.reset();
  pooled.busy = false;
  if (!outcome) {
    drop(pooled);
    drop_idle();
  }
  idle_.push_back(index);
  co_return outcome;
}

net::Task<Result<std::uint64_t>> StorageClient::perform(const Operation& operation) {
  bool has_failed = false;
  Duration paused = Duration::zero();
  for (;; ++counters_.repeats) {
    if (!co_await free_connections_.take()) co_return std::unexpected(closed());
    const Outcome outcome = co_await try_once(operation);
    free_connections_.give_back();
    if (closed_) co_return std::unexpected(closed());
    if (outcome && *outcome >= 0) co_return static_cast<std::uint64_t>(*outcome);
    const OpsError error = outcome ? error_in(*outcome) : OpsError::communication;
    if (error == OpsError::again && operation.type == MessageType::write_local_file) {
      (void)co_await closing_.wait_for(options_.retry_delay);
      continue;
    }
    if (error != OpsError::communication || paused >= options_.give_up) {
      Error problem = error_of(operation.type, error);
      if (error == OpsError::communication) {
        problem.message += fmt::format(" (storage server {})", net::to_string(options_.server));
      }
      co_return std::unexpected(std::move(problem));
    }
    if (!std::exchange(has_failed, true)) continue;
    const Duration delay = delay_after(paused);
    paused += delay;
    (void)co_await closing_.wait_for(delay);
  }
}

Duration StorageClient::delay_after(Duration paused) const {
  constexpr int kSteadyDelays = 12;  // a minute, with the default delay
  constexpr int kLongDelays = 60;
  if (paused < kSteadyDelays * options_.retry_delay) return options_.retry_delay;
  if (paused < kLongDelays * options_.retry_delay) return 4 * options_.retry_delay;
  return 12 * options_.retry_delay;
}

StorageClient::Operation StorageClient::file_operation(MessageType type, const ChunkFile& file,
                                                       std::uint64_t offset,
                                                       std::uint64_t count) const {
  const std::string handle = handle_of(file);
  beegfs::FileIo io;
  io.offset = static_cast<std::int64_t>(offset);
  io.count = static_cast<std::int64_t>(count);
  io.access_flags = kReadAndWrite;
  if (type == MessageType::write_local_file) io.owner = file.owner;
  io.file_handle = handle;
  io.client = options_.node;
  io.path = {.flags = beegfs::PathInfo::kHasOrigin,
             .owner = file.directory_owner,
             .directory = file.directory};
  io.target = file.target;
  const beegfs::MessageHeader header{.type = type, .target = file.target, .user = file.user};
  return {.message = beegfs::encode_file_io(header, io), .type = type};
}

net::Task<Result<std::uint64_t>> StorageClient::read_all(const ChunkFile& file,
                                                         std::uint64_t offset, ReadRoom room) {
  Operation operation = file_operation(MessageType::read_local_file, file, offset, room.size);
  operation.into = room;
  co_return co_await perform(operation);
}

net::Task<Result<std::uint64_t>> StorageClient::read(const ChunkFile& file, std::uint64_t offset,
                                                     std::span<std::byte> into) {
  return read_all(file, offset, {.memory = into, .size = into.size()});
}

net::Task<Result<std::uint64_t>> StorageClient::discard(const ChunkFile& file, std::uint64_t offset,
                                                        std::uint64_t size) {
  return read_all(file, offset, {.memory = {}, .size = size});
}

net::Task<Result<void>> StorageClient::write_all(const ChunkFile& file, std::uint64_t offset,
                                                 WriteBytes bytes, std::uint64_t size) {
  if (size == 0) co_return Result<void>();  // servers wait for the data of a write
  Operation operation = file_operation(MessageType::write_local_file, file, offset, size);
  operation.from = bytes;
  const Result<std::uint64_t> written = co_await perform(operation);
  VPFS_CO_TRY(written);
  if (*written != size) {
    co_return fail(fmt::format("a write of {} bytes wrote only {}", size, *written),
                   std::make_error_code(std::errc::io_error));
  }
  co_return Result<void>();
}

net::Task<Result<void>> StorageClient::write(const ChunkFile& file, std::uint64_t offset,
                                             std::span<const std::byte> from) {
  return write_all(file, offset, {.memory = from, .file = {}}, from.size());
}

net::Task<Result<void>> StorageClient::write(const ChunkFile& file, std::uint64_t offset,
                                             net::OutputQueue::FilePart from) {
  return write_all(file, offset, {.memory = {}, .file = from}, from.size);
}

net::Task<Result<void>> StorageClient::sync(const ChunkFile& file) {
  std::vector<std::byte> body;
  ByteWriter out(body);
  out.u32(options_.node);
  write_text(out, handle_of(file));
  out.u16(file.target);
  const MessageType type = MessageType::fsync_local_file;
  const Operation operation{.message = beegfs::make_message(
                                {.type = type, .target = file.target, .user = file.user}, body),
                            .type = type,
                            .answer = MessageType::fsync_local_file_resp,
                            .long_result = true};
  const Result<std::uint64_t> done = co_await perform(operation);
  VPFS_CO_TRY(done);
  co_return Result<void>();
}

net::Task<Result<void>> StorageClient::remove(const ChunkFile& file) {
  std::vector<std::byte> body;
  ByteWriter out(body);
  write_text(out, file.entry);
  write_path(out, file);
  out.u16(file.target);
  const MessageType type = MessageType::unlink_local_file;
  const Operation operation{.message = beegfs::make_message(
                                {.type = type, .target = file.target, .user = file.user}, body),
                            .type = type,
                            .answer = MessageType::unlink_local_file_resp};
  const Result<std::uint64_t> done = co_await perform(operation);
  VPFS_CO_TRY(done);
  co_return Result<void>();
}

net::Task<Result<void>> StorageClient::probe(std::uint16_t target) {
  std::vector<std::byte> body;
  ByteWriter(body).u16(target);
  const MessageType type = MessageType::stat_storage_path;
  const Operation operation{.message = beegfs::make_message({.type = type, .target = target}, body),
                            .type = type,
                            .answer = MessageType::stat_storage_path_resp};
  if (!co_await free_connections_.take()) co_return std::unexpected(closed());
  const Outcome outcome = co_await try_once(operation);
  free_connections_.give_back();
  const std::string server = net::to_string(options_.server);
  if (!outcome) co_return fail(fmt::format("{} does not answer as a storage server", server));
  if (*outcome < 0) {
    const std::error_code code = error_code_of(error_in(*outcome));
    co_return fail(fmt::format("{}, target {}: {}", server, target, code.message()), code);
  }
  co_return Result<void>();
}

}  // namespace vpfs::client
