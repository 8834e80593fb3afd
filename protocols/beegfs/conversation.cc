#include "protocols/beegfs/conversation.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/check.h"

namespace vpfs::beegfs {
namespace {

constexpr std::uint64_t kWord = sizeof(std::int64_t);
constexpr std::uint64_t kWriteAnswerSize = kMessageHeaderSize + kWord;
// Data pass in pieces of this size, so that progress shows.
constexpr std::uint64_t kMostData = std::uint64_t{1024} * 1024;

// connMsgLongTimeout; no message carries it.
constexpr Duration kClientTimeout = std::chrono::seconds(600);

Step forward(std::uint64_t size) {
  return {.action = Step::Action::forward, .size = size};
}

Step need(std::uint64_t size) {
  return {.action = Step::Action::need_more, .size = size};
}

bool is_mirrored(const MessageHeader& header) {
  const bool is_read = header.type == MessageType::read_local_file;
  return (header.feature_flags & (is_read ? kReadMirrored : kWriteMirrored)) != 0;
}

// The header only selects one of the server's queues, so a client may put any target there.
std::uint16_t target_of(const MessageHeader& header, const FileIo& io) {
  return is_mirrored(header) ? header.target : io.target;
}

std::uint32_t device_of(const MessageHeader& header, const FileIo& io) {
  return io.target + (is_mirrored(header) ? kMirrorGroup : 0);
}

std::uint64_t fingerprint(const MessageHeader& header, const FileIo& io) {
  std::uint64_t hash = std::hash<std::string_view>{}(io.file_handle);
  for (const std::uint64_t part :
       {std::uint64_t{io.client}, static_cast<std::uint64_t>(io.offset),
        static_cast<std::uint64_t>(io.count), static_cast<std::uint64_t>(header.type)}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
  }
  return hash | 1;
}

// The body begins with the text that an Ack repeats.
bool wants_ack(std::span<const std::byte> message) {
  ByteReader in(message);
  in.skip(kMessageHeaderSize);
  return in.u32() > 0 && !in.failed();
}

}  // namespace

Step BeegfsConversation::next(Sender from, std::span<const std::byte> bytes) {
  return from == Sender::client ? client_bytes(bytes) : server_bytes(bytes);
}

Step BeegfsConversation::client_bytes(std::span<const std::byte> bytes) {
  if (phase_ == Phase::held) return {.action = Step::Action::wait};
  if (data_left_ > 0) return take_data();
  if (phase_ != Phase::none) return {.action = Step::Action::wait};
  const auto header = decode_message_header(bytes);
  if (!header) {
    if (header.error() == HeaderError::need_more) return need(kMessageHeaderSize);
    return lost(describe(header.error()));
  }
  const std::uint64_t wanted = std::min<std::uint64_t>(header->length, kMostNeeded);
  if (bytes.size() < wanted) return need(wanted);
  sends_data_ = false;
  return client_message(*header, bytes.first(static_cast<std::size_t>(wanted)));
}

Step BeegfsConversation::take_data() {
  const std::uint64_t size = std::min(data_left_, kMostData);
  data_left_ -= size;
  data_from_client_ += size;
  sends_data_ = true;
  if (discard_data_) return {.action = Step::Action::discard, .size = size};
  moved_ += size;
  return forward(size);
}

Step BeegfsConversation::client_message(const MessageHeader& header,
                                        std::span<const std::byte> bytes) {
  if (is_file_io(header.type)) return file_io(header, bytes);
  if (moves_chunks(header.type) && !may_move_chunks()) {
    return lost(fmt::format("{}, which only servers send", name(header.type)));
  }
  if (header.type == MessageType::peer_info && bytes.size() >= kMessageHeaderSize + 8) {
    ByteReader in(bytes.subspan(kMessageHeaderSize));
    const NodeType type{in.u32()};
    const std::uint32_t number = in.u32();
    if (type == NodeType::client) client_ = number;
  }
  if (has_answer(header.type)) {
    ++answers_due_;
    if (name(header.type).empty()) ++answers_in_doubt_;
  } else if (asks_for_ack(header.type) && wants_ack(bytes)) {
    ++answers_due_;
  }
  return forward(header.length);
}

Step BeegfsConversation::file_io(const MessageHeader& header, std::span<const std::byte> bytes) {
  if (answers_due_ > answers_in_doubt_) return {.action = Step::Action::wait};
  if (bytes.size() < header.length) {
    return lost(fmt::format("{} of {} bytes", name(header.type), header.length));
  }
  const auto io = decode_file_io(header, bytes);
  // The end of its data is unknown.
  if (!io) return lost(fmt::format("{}: {}", name(header.type), describe(io.error())));
  const bool is_read = header.type == MessageType::read_local_file;
  // It would keep a thread of the server, and a slot, until the server gives it up.
  if (!is_read && io->count == 0) {
    return lost(fmt::format("{} of no bytes, which servers never answer", name(header.type)));
  }
  // Clients wait for all answers before a read or write, so the unknown types had none.
  answers_due_ = answers_in_doubt_ = 0;

  ++key_;
  is_read_ = is_read;
  asked_ = static_cast<std::uint64_t>(io->count);
  moved_ = 0;
  data_left_ = is_read_ ? 0 : asked_;
  discard_data_ = false;
  reported_ = scheduled_ = is_scheduled();
  if (!scheduled_) {
    phase_ = is_read_ ? Phase::read_answer : Phase::write_answer;
    return forward(header.length);
  }
  phase_ = Phase::held;
  held_ = {.key = key_,
           .kind = is_read_ ? IoKind::read : IoKind::write,
           .bytes = asked_,
           .uid = header.user == kNoUser ? std::nullopt : std::optional(header.user),
           .node = client_ ? std::optional(io->client) : std::nullopt,
           .target = target_of(header, *io),
           .device = device_of(header, *io),
           .directory = io->path.directory,
           .open_file = io->file_handle,
           .fingerprint = fingerprint(header, *io),
           .may_be_short = is_read_,
           .offset = static_cast<std::uint64_t>(io->offset)};
  if ((io->path.flags & PathInfo::kHasOrigin) != 0) held_.owner = io->path.owner;
  return {.action = Step::Action::hold, .size = header.length};
}

Step BeegfsConversation::server_bytes(std::span<const std::byte> bytes) {
  if (phase_ == Phase::read_answer) return read_answer(bytes);
  if (bytes.empty()) return need(kMessageHeaderSize);
  const auto header = decode_message_header(bytes);
  if (!header) {
    if (header.error() == HeaderError::need_more) return need(kMessageHeaderSize);
    return lost(describe(header.error()));
  }
  if (phase_ == Phase::write_answer) return write_answer(*header, bytes);
  if (answers_due_ > 0) --answers_due_;
  answers_in_doubt_ = std::min(answers_in_doubt_, answers_due_);
  return forward(header->length);
}

Step BeegfsConversation::read_answer(std::span<const std::byte> bytes) {
  if (bytes.size() < kWord) return need(kWord);
  const std::int64_t word = ByteReader(bytes).i64();
  if (word <= 0) return finish(kWord, moved_, word < 0);
  const auto size = static_cast<std::uint64_t>(word);
  if (size > asked_ - moved_) {
    return lost(
        fmt::format("{} bytes where {} of a read's {} are left", size, asked_ - moved_, asked_));
  }
  moved_ += size;
  // After the last requested byte only the word that ends the answer follows.
  if (moved_ == asked_) return finish(kWord + size + kWord, moved_, false);
  return forward(kWord + size);
}

Step BeegfsConversation::write_answer(const MessageHeader& header,
                                      std::span<const std::byte> bytes) {
  if (header.type != MessageType::write_local_file_resp || header.length < kWriteAnswerSize) {
    return finish(header.length, 0, true);
  }
  if (bytes.size() < kWriteAnswerSize) return need(kWriteAnswerSize);
  const std::int64_t result = ByteReader(bytes.subspan(kMessageHeaderSize)).i64();
  const bool failed = result < 0;
  return finish(header.length, failed ? moved_ : static_cast<std::uint64_t>(result), failed);
}

Step BeegfsConversation::finish(std::uint64_t size, std::uint64_t bytes, bool failed) {
  phase_ = Phase::none;
  Step step = forward(size);
  if (reported_) {
    step.finished = FinishedIo{.key = key_, .bytes = std::min(bytes, asked_), .failed = failed};
  }
  return step;
}

Step BeegfsConversation::lost(std::string problem) {
  problem_ = std::move(problem);
  return {.action = Step::Action::lost_framing};
}

void BeegfsConversation::released(IoKey key) {
  VPFS_ASSERT(phase_ == Phase::held && key == key_);
  phase_ = is_read_ ? Phase::read_answer : Phase::write_answer;
}

// Clients retry a write that is answered with `again` forever, every five seconds. A read would
// fail with `again`; with `communication` clients retry it like after a lost connection, for
// connCommRetrySecs.
std::vector<std::byte> BeegfsConversation::refuse(IoKey key) {
  VPFS_ASSERT(phase_ == Phase::held && key == key_);
  phase_ = Phase::none;
  discard_data_ = true;
  if (!is_read_) return beegfs::write_answer(-static_cast<std::int64_t>(OpsError::again));
  std::vector<std::byte> answer;
  ByteWriter(answer).i64(-static_cast<std::int64_t>(OpsError::communication));
  return answer;
}

std::uint64_t BeegfsConversation::moved(IoKey key) {
  return key == key_ ? moved_ : 0;
}

bool BeegfsConversation::at_rest() const {
  if (phase_ == Phase::held) return true;
  const bool unscheduled = phase_ != Phase::none && !scheduled_;
  return answers_due_ == 0 && data_left_ == 0 && !unscheduled;
}

std::optional<ClientTimeout> BeegfsConversation::client_timeout() const {
  if (!client_) return std::nullopt;
  return ClientTimeout{.timeout = kClientTimeout};
}

// The stream still needs following; only the end is no longer reported.
void BeegfsConversation::forget(IoKey key) {
  if (key == key_) reported_ = false;
}

}  // namespace vpfs::beegfs
