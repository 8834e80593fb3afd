#include "protocols/orangefs/conversation.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/byte_reader.h"
#include "base/check.h"
#include "protocols/orangefs/errors.h"
#include "protocols/orangefs/fs_config.h"

namespace vpfs::orangefs {
namespace {

// A forgotten request with data, as it is saved.
constexpr std::uint64_t kRead = 1;
constexpr std::uint64_t kWrite = 2;
// Generic header, op, status and one i64: all that IO and WRITE_COMPLETION responses have.
constexpr std::uint64_t kResponseHead = 24;
// All of a response whose status is not 0.
constexpr std::uint64_t kFailedResponse = 16;
// Generic header and op.
constexpr std::uint64_t kRequestHead = 12;
// A GETCONFIG response has at most 64 KiB of text; longer ones are ignored.
constexpr std::uint64_t kMostConfig = std::uint64_t{80} * 1024;

Step forward(const BmiHeader& header) {
  return {.action = Step::Action::forward, .size = kBmiHeaderSize + header.payload_size};
}

Step need(std::uint64_t payload_bytes) {
  return {.action = Step::Action::need_more, .size = kBmiHeaderSize + payload_bytes};
}

// The datafile of an IO, in one number.
std::uint64_t file_of(const IoSummary& io) {
  const auto fs_id = static_cast<std::uint32_t>(io.fs_id);
  const std::uint64_t file = io.datafile ^ (fs_id * 0x9e3779b97f4a7c15U);
  return std::max<std::uint64_t>(file, 1);
}

}  // namespace

Step OrangefsConversation::next(Sender from, std::span<const std::byte> bytes) {
  const auto header = decode_bmi_header(bytes);
  if (!header) {
    if (header.error() == BmiError::need_more) return need(0);
    return lost(describe(header.error()));
  }
  return from == Sender::client ? client_message(*header, bytes) : server_message(*header, bytes);
}

Step OrangefsConversation::client_message(const BmiHeader& header,
                                          std::span<const std::byte> bytes) {
  sends_data_ = false;
  if (header.mode != BmiMode::unexpected) return client_data(header);
  if (forgotten_ > kMostForgotten) return lost("too many requests were never answered");
  if (header.payload_size > kMaxEagerSize) {
    return lost(fmt::format("a request of {} bytes; the protocol allows {}", header.payload_size,
                            kMaxEagerSize));
  }
  if (header.payload_size < kRequestHead) return pass(header, Op::invalid);
  const std::span<const std::byte> payload = bytes.subspan(kBmiHeaderSize);
  if (payload.size() < kRequestHead) return need(kRequestHead);
  const std::optional<Op> op = peek_operation(payload);
  if (!op) return pass(header, Op::invalid);

  const bool is_io = *op == Op::io || *op == Op::small_io;
  const bool is_held = is_io || (hold_metadata_ && is_metadata(*op));
  if (is_held || carries_credential(*op)) {
    if (payload.size() < header.payload_size) return need(header.payload_size);
    const auto whole = payload.first(static_cast<std::size_t>(header.payload_size));
    if (is_io) return hold_io(header, *op, whole);
    learn_uid(whole);
    if (is_held) return hold_metadata_request(header, *op, whole);
  }
  return pass(header, *op);
}

// A server that gets data which it does not wait for reads no more of the connection, and all that
// is released behind them would keep its slot.
Step OrangefsConversation::client_data(const BmiHeader& header) {
  Operation* const operation = operations_.find(header.tag);
  const bool is_write = operation != nullptr && operation->io_type == IoType::write;
  const bool comes_late = is_write && operation->phase == Phase::forgotten;
  if (!comes_late && (!is_write || operation->phase != Phase::write_flow)) {
    return lost(fmt::format("data under tag {}, which belong to no write", header.tag));
  }
  operation->moved += static_cast<std::int64_t>(header.payload_size);
  if (operation->exact && operation->moved > operation->part.requested.bytes) {
    return lost(fmt::format("more data under tag {} than the write announced", header.tag));
  }
  if (comes_late) {
    if (operation->is_answered && operation->moved == operation->part.requested.bytes) {
      erase(header.tag);
      --forgotten_;
    }
    return forward(header);
  }
  data_from_client_ += header.payload_size;
  data_tag_ = header.tag;
  sends_data_ = true;
  return forward(header);
}

// A request that is not held. Data of started writes may follow it, but the server answers it
// without them. Servers answer what they cannot read with an error under its tag, which must not
// end I/O.
Step OrangefsConversation::pass(const BmiHeader& header, Op op) {
  if (operations_.find(header.tag) != nullptr) return used_again(header.tag);
  if (passing_ >= kMostPassing) return {.action = Step::Action::wait};
  operations_.insert(header.tag, {.phase = Phase::passing, .op = op});
  ++passing_;
  return forward(header);
}

// Keeps what is needed to size a sparse read once the datafile's end is known; null for other I/O.
std::unique_ptr<SparseIo> OrangefsConversation::sparse_io(const IoSummary& io) {
  if (io.op != Op::io || io.io_type != IoType::read) return nullptr;
  if (io.part.kind != IoPart::Kind::sparse || io.part.requested.bytes == 0) return nullptr;
  return SparseIo::of(io.fields(), io.elements);
}

TransferSize OrangefsConversation::readable(const Operation& operation, std::int64_t bstream_size) {
  if (operation.sparse) return operation.sparse->readable(bstream_size);
  return operation.part.readable(bstream_size).value_or(operation.part.requested);
}

Step OrangefsConversation::used_again(Tag tag) {
  return lost(fmt::format("tag {} of a request that is still under way is used again", tag));
}

Step OrangefsConversation::hold_metadata_request(const BmiHeader& header, Op op,
                                                 std::span<const std::byte> payload) {
  if (operations_.find(header.tag) != nullptr) return used_again(header.tag);
  const auto hints = hints_of_request(payload);
  if (!hints) return pass(header, op);  // the server will say what is wrong with it
  operations_.insert(header.tag, {.phase = Phase::metadata, .op = op, .released = false});
  held_ = {.key = header.tag,
           .kind = IoKind::metadata,
           .uid = several_uids_ ? std::nullopt : uid_,
           .handle = peek_handle(payload)};
  held_hints_ = *hints;
  return {.action = Step::Action::hold, .size = kBmiHeaderSize + header.payload_size};
}

Step OrangefsConversation::hold_io(const BmiHeader& header, Op op,
                                   std::span<const std::byte> payload) {
  if (operations_.find(header.tag) != nullptr) return used_again(header.tag);
  const auto io = summarise_io(payload);
  // A server may read it all the same, and its data would pass unscheduled.
  if (!io) return lost(fmt::format("{}: {}", name(op), describe(io.error())));
  if (io->offset < 0 || io->aggregate_size < 0) {
    return lost(fmt::format("{} at {} of {} bytes", name(op), io->offset, io->aggregate_size));
  }
  const std::uint64_t file = file_of(*io);
  operations_.insert(header.tag, {.phase = Phase::response,
                                  .op = io->op,
                                  .io_type = io->io_type,
                                  .exact = io->part.requested.exact,
                                  .released = false,
                                  .part = io->part,
                                  .sparse = sparse_io(*io),
                                  .file = file});
  held_ = {.key = header.tag,
           .kind = io->io_type == IoType::write ? IoKind::write : IoKind::read,
           .bytes = static_cast<std::uint64_t>(io->part.requested.bytes),
           .file_system = io->fs_id,
           .uid = several_uids_ ? std::nullopt : uid_,
           .may_be_short = io->op == Op::io && io->io_type == IoType::read,
           .file = file,
           .handle = io->datafile};
  if (io->part.kind != IoPart::Kind::unknown) {
    held_.offset = static_cast<std::uint64_t>(io->part.begin);
  }
  held_hints_ = io->hints;
  held_part_ = io->part;
  return {.action = Step::Action::hold, .size = kBmiHeaderSize + header.payload_size};
}

Step OrangefsConversation::server_message(const BmiHeader& header,
                                          std::span<const std::byte> bytes) {
  if (header.mode == BmiMode::unexpected) {
    return lost("a request from the server's side");
  }
  Operation* operation = operations_.find(header.tag);
  if (operation == nullptr) return forward(header);
  if (!operation->released) {
    return lost(fmt::format("an answer under tag {} to a request that is held here", header.tag));
  }
  switch (operation->phase) {
    case Phase::response:
      return io_response(header, *operation, bytes);
    case Phase::read_flow:
      return read_data(header, *operation);
    case Phase::write_flow:
      return write_completion(header, *operation, bytes);
    case Phase::metadata:
      return metadata_response(header, bytes);
    case Phase::passing:
      return passing_response(header, operation->op, bytes);
    case Phase::late_answer:
      erase(header.tag);
      --forgotten_;
      break;
    case Phase::forgotten:
      break;
  }
  return forward(header);
}

void OrangefsConversation::released(IoKey key) {
  Operation* const operation = operations_.find(key);
  if (operation != nullptr) operation->released = true;
}

Step OrangefsConversation::io_response(const BmiHeader& header, Operation& operation,
                                       std::span<const std::byte> bytes) {
  // SMALL_IO: io_type, pad, bstream_size, result_size before the data.
  const std::uint64_t wanted = std::min<std::uint64_t>(header.payload_size, 40);
  if (bytes.size() < kBmiHeaderSize + wanted) return need(wanted);
  ByteReader in(bytes.subspan(kBmiHeaderSize, static_cast<std::size_t>(wanted)));
  in.skip(8);
  const Op op{in.i32()};
  const Status status = in.i32();
  if (in.failed() || status != 0 || op != operation.op) return finish(header, 0, true);
  if (op == Op::small_io) {
    in.skip(16);
    const std::int64_t result_size = in.i64();
    return finish(header, in.failed() ? 0 : result_size, in.failed());
  }
  const std::int64_t bstream_size = in.i64();
  if (in.failed()) return finish(header, 0, true);
  operation.file_size = static_cast<std::uint64_t>(std::max<std::int64_t>(bstream_size, 0));
  if (operation.io_type == IoType::write) {
    operation.phase = Phase::write_flow;
    return forward(header);
  }
  const TransferSize size = readable(operation, bstream_size);
  operation.sparse.reset();
  operation.exact = size.exact;
  operation.expected = size.bytes;
  if (operation.exact && operation.expected <= 0) return finish(header, 0, false);
  operation.phase = Phase::read_flow;
  return forward(header);
}

Step OrangefsConversation::read_data(const BmiHeader& header, Operation& operation) {
  const auto size = static_cast<std::int64_t>(header.payload_size);
  operation.moved += size;
  operation.expected -= size;
  // A bound holds for sound requests alone: see end_shows().
  const bool is_last = operation.exact && operation.expected <= 0;
  return is_last ? finish(header, operation.moved, false) : forward(header);
}

Step OrangefsConversation::write_completion(const BmiHeader& header, const Operation& operation,
                                            std::span<const std::byte> bytes) {
  const std::uint64_t wanted = std::min(header.payload_size, kResponseHead);
  if (bytes.size() < kBmiHeaderSize + wanted) return need(wanted);
  ByteReader in(bytes.subspan(kBmiHeaderSize, static_cast<std::size_t>(wanted)));
  in.skip(12);
  const Status status = in.i32();
  const std::int64_t total = in.i64();
  const bool failed = in.failed() || status != 0;
  if (!failed && total < operation.moved) {
    return lost(fmt::format("a write of {} bytes that ends after {}", operation.moved, total));
  }
  Operation rest = {.phase = Phase::forgotten,
                    .io_type = IoType::write,
                    .exact = operation.exact,
                    .part = operation.part,
                    .moved = operation.moved,
                    .is_answered = true};
  const Step step = finish(header, failed ? operation.moved : total, failed);
  // The client may not know yet, and send on.
  if (failed && rest.moved < rest.part.requested.bytes) {
    operations_.insert(header.tag, std::move(rest));
    ++forgotten_;
  }
  return step;
}

Step OrangefsConversation::metadata_response(const BmiHeader& header,
                                             std::span<const std::byte> bytes) {
  const std::uint64_t wanted = std::min<std::uint64_t>(header.payload_size, kFailedResponse);
  if (bytes.size() < kBmiHeaderSize + wanted) return need(wanted);
  ByteReader in(bytes.subspan(kBmiHeaderSize, static_cast<std::size_t>(wanted)));
  in.skip(12);
  const Status status = in.i32();
  return finish(header, 0, in.failed() || status != 0);
}

// Answers pass unread, except the server's configuration.
Step OrangefsConversation::passing_response(const BmiHeader& header, Op op,
                                            std::span<const std::byte> bytes) {
  if (op == Op::getconfig && !client_timeout_ && header.payload_size <= kMostConfig) {
    if (bytes.size() < kBmiHeaderSize + header.payload_size) return need(header.payload_size);
    learn_config(bytes.subspan(kBmiHeaderSize, static_cast<std::size_t>(header.payload_size)));
  }
  operations_.erase(header.tag);
  --passing_;
  return forward(header);
}

void OrangefsConversation::learn_config(std::span<const std::byte> payload) {
  const auto response = decode_response(payload);
  if (!response) return;
  const auto* const body = std::get_if<GetconfigResponse>(&response->body);
  if (body == nullptr) return;
  // A configuration that cannot be read passes: the server and its clients have to agree on it.
  const FsConfig config = read_fs_config(body->config).config;
  const Duration timeout = config.client_job_timeout.value_or(Duration::zero());
  if (timeout <= Duration::zero()) return;
  ClientTimeout learned{.timeout = timeout, .file_systems = {}};
  for (const FsConfig::FileSystem& file_system : config.file_systems) {
    if (file_system.id) learned.file_systems.push_back(*file_system.id);
  }
  if (!learned.file_systems.empty()) client_timeout_ = std::move(learned);
}

Step OrangefsConversation::finish(const BmiHeader& header, std::int64_t bytes, bool failed) {
  Step step = forward(header);
  step.finished = FinishedIo{.key = header.tag,
                             .bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)),
                             .failed = failed};
  const Operation* const operation = operations_.find(header.tag);
  step.finished->file = operation->file;
  if (operation->io_type == IoType::read) step.finished->file_size = operation->file_size;
  erase(header.tag);
  return step;
}

Step OrangefsConversation::lost(std::string problem) {
  problem_ = std::move(problem);
  return {.action = Step::Action::lost_framing};
}

void OrangefsConversation::learn_uid(std::span<const std::byte> payload) {
  if (several_uids_) return;
  const std::optional<std::uint32_t> uid = peek_uid(payload);
  if (!uid) return;
  if (uid_ && *uid_ != *uid) several_uids_ = true;
  uid_ = uid;
}

std::optional<std::string_view> OrangefsConversation::held_hint(std::string_view name) const {
  return held_hints_.named(name);
}

std::vector<std::byte> OrangefsConversation::refuse(IoKey key) {
  const Operation* operation = operations_.find(key);
  VPFS_ASSERT(operation != nullptr);
  const Op op = operation->op;
  erase(key);
  // Clients retry a failed IO ClientRetryLimit times with a delay, whatever the status. Only EAGAIN
  // must not be used: they retry it forever and at once.
  return error_message(key, op, status_from_errno(ETIMEDOUT));
}

std::uint64_t OrangefsConversation::moved(IoKey key) {
  const Operation* operation = operations_.find(key);
  return operation == nullptr ? 0 : static_cast<std::uint64_t>(operation->moved);
}

// After the positive answer to a write the server only waits for the client's data.
bool OrangefsConversation::awaits_client(IoKey key, bool in_mid_message) {
  const Operation* const operation = operations_.find(key);
  if (operation == nullptr || operation->phase != Phase::write_flow) return false;
  if (in_mid_message && data_tag_ == key) return true;
  return operation->moved == 0 || !operation->exact ||
         operation->moved < operation->part.requested.bytes;
}

// A server works on the requests of a handle in their order, one at a time. IO goes beside IO, and
// requests that only read go beside each other, if nothing else waits before them. An IO is
// answered when its turn has come, before its data.
bool OrangefsConversation::is_queued(IoKey key) {
  const Operation* const operation = operations_.find(key);
  return operation != nullptr &&
         (operation->phase == Phase::response || operation->phase == Phase::metadata);
}

bool OrangefsConversation::end_shows(IoKey key) {
  const Operation* const operation = operations_.find(key);
  return operation == nullptr || operation->phase != Phase::read_flow || operation->exact;
}

std::uint64_t OrangefsConversation::held_bytes_of(std::uint64_t size) const {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const auto bstream_size = static_cast<std::int64_t>(std::min(size, kLargest));
  return static_cast<std::uint64_t>(
      held_part_.readable(bstream_size).value_or(held_part_.requested).bytes);
}

void OrangefsConversation::erase(Tag tag) {
  Operation* const operation = operations_.find(tag);
  if (operation == nullptr) return;
  operation->sparse.reset();  // its cell may stay unused for long
  operations_.erase(tag);
}

// What comes of it later must not be taken for an answer to another request of the same tag.
void OrangefsConversation::forget(IoKey key) {
  Operation* const operation = operations_.find(key);
  if (operation == nullptr || is_late(operation->phase)) return;
  operation->sparse.reset();
  if (operation->phase == Phase::passing) --passing_;
  const bool has_flow = operation->op == Op::io && operation->phase != Phase::passing;
  operation->phase = has_flow ? Phase::forgotten : Phase::late_answer;
  ++forgotten_;
}

void OrangefsConversation::ended(IoKey key) {
  const Operation* const operation = operations_.find(key);
  if (operation == nullptr || operation->phase != Phase::read_flow) return forget(key);
  erase(key);
}

void OrangefsConversation::save(SavedState& to) {
  StateWriter(to).all_of(*this);
  SavedState::Numbers passing;
  SavedState::Numbers forgotten;
  operations_.for_each([&](Tag tag, const Operation& operation) {
    if (operation.phase == Phase::passing) {
      passing.push_back(tag);
      passing.push_back(static_cast<std::uint64_t>(operation.op));
    } else if (is_late(operation.phase)) {
      forgotten.push_back(tag);
      forgotten.push_back(operation.phase == Phase::late_answer ? 0
                          : operation.io_type == IoType::write  ? kWrite
                                                                : kRead);
    }
  });
  to.set("passing", std::move(passing));
  to.set("forgotten", std::move(forgotten));
  if (!client_timeout_) return;
  to.set("client_timeout", static_cast<std::uint64_t>(client_timeout_->timeout.count()));
  StateWriter{to}("file_systems", client_timeout_->file_systems);
}

void OrangefsConversation::restore(const SavedState& from) {
  StateReader(from).all_of(*this);
  if (const auto* const passing = from.find<SavedState::Numbers>("passing")) {
    for (std::size_t i = 0; i + 1 < passing->size() && passing_ < kMostPassing; i += 2) {
      if (operations_.find((*passing)[i]) != nullptr) continue;
      operations_.insert((*passing)[i], {.phase = Phase::passing, .op = Op((*passing)[i + 1])});
      ++passing_;
    }
  }
  if (const auto* const forgotten = from.find<SavedState::Numbers>("forgotten")) {
    for (std::size_t i = 0; i + 1 < forgotten->size() && forgotten_ <= kMostForgotten; i += 2) {
      if (operations_.find((*forgotten)[i]) != nullptr) continue;
      const std::uint64_t what = (*forgotten)[i + 1];
      operations_.insert((*forgotten)[i],
                         {.phase = what == 0 ? Phase::late_answer : Phase::forgotten,
                          .io_type = what == kWrite ? IoType::write : IoType::read,
                          .exact = false});
      ++forgotten_;
    }
  }
  if (const auto* const timeout = from.find<std::uint64_t>("client_timeout")) {
    client_timeout_ = {.timeout = Duration(static_cast<std::int64_t>(*timeout))};
    StateReader{from}("file_systems", client_timeout_->file_systems);
  }
}

void OrangefsConversation::forget_answers() {
  std::vector<Tag> tags;
  operations_.for_each([&](Tag tag, const Operation& operation) {
    if (operation.phase == Phase::passing) tags.push_back(tag);
  });
  for (const Tag tag : tags) forget(tag);
}

}  // namespace vpfs::orangefs
