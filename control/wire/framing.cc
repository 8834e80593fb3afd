#include "control/wire/framing.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>

#include "base/check.h"
#include "base/utf8.h"

namespace vpfs::control {
namespace {

constexpr std::size_t kLeastRoom = 4096;
// A buffer above this size is not kept for the next frame.
constexpr std::size_t kMostKeptForFrame = std::size_t{64} * 1024;

// protobuf reports one mistake in its log alone: a text that is not UTF-8. Without this, peers
// could fill standard error.
thread_local bool complained = false;

void note_complaint(google::protobuf::LogLevel /*level*/, const char* /*file*/, int /*line*/,
                    const std::string& /*text*/) {
  complained = true;
}

void take_log() {
  static const auto before = google::protobuf::SetLogHandler(&note_complaint);
  static_cast<void>(before);
}

// Receivers take no message with a text that is not UTF-8, and names from a wire or a file may have
// any bytes.
void make_utf8(google::protobuf::Message& message) {
  using Field = google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(message, &fields);
  for (const Field* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->type() == Field::TYPE_STRING && field->is_repeated()) {
        const std::string text = reflection->GetRepeatedString(message, field, i);
        reflection->SetRepeatedString(&message, field, i, valid_utf8(text));
      } else if (field->type() == Field::TYPE_STRING) {
        reflection->SetString(&message, field, valid_utf8(reflection->GetString(message, field)));
      } else if (field->type() == Field::TYPE_MESSAGE && field->is_repeated()) {
        make_utf8(*reflection->MutableRepeatedMessage(&message, field, i));
      } else if (field->type() == Field::TYPE_MESSAGE) {
        make_utf8(*reflection->MutableMessage(&message, field));
      }
    }
  }
}

bool append_as_it_is(const Envelope& envelope, std::size_t most, std::string& out) {
  const std::size_t size = envelope.ByteSizeLong();
  if (size > std::min<std::size_t>(most, std::numeric_limits<std::int32_t>::max())) return false;
  const std::size_t before = out.size();
  out.resize(before + kLengthSize + size);
  auto* at = reinterpret_cast<std::uint8_t*>(out.data() + before);
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    at[i] = static_cast<std::uint8_t>(size >> (8 * (kLengthSize - 1 - i)));
  }
  envelope.SerializeWithCachedSizesToArray(at + kLengthSize);
  return true;
}

}  // namespace

std::string to_string(FrameError error) {
  return error == FrameError::too_short ? "a frame without a message"
                                        : "a frame that is longer than allowed";
}

std::expected<std::optional<std::span<const std::byte>>, FrameError> take_frame(
    std::span<const std::byte>& bytes, std::size_t most) {
  if (bytes.size() < kLengthSize) return std::nullopt;
  std::size_t size = 0;
  for (const std::byte each : bytes.first(kLengthSize)) {
    size = size << 8 | std::to_integer<std::size_t>(each);
  }
  if (size < kLeastFrame) return std::unexpected(FrameError::too_short);
  if (size > most) return std::unexpected(FrameError::too_long);
  if (bytes.size() - kLengthSize < size) return std::nullopt;
  const std::span<const std::byte> frame = bytes.subspan(kLengthSize, size);
  bytes = bytes.subspan(kLengthSize + size);
  return frame;
}

std::span<std::byte> FrameReader::room() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (buffer_.size() > kMostKeptForFrame) std::vector<std::byte>().swap(buffer_);
  }
  if (buffer_.size() - end_ < kLeastRoom && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kLeastRoom) buffer_.resize(std::max(kLeastRoom, 2 * end_));
  return std::span(buffer_).subspan(end_);
}

void FrameReader::received(std::size_t size) {
  VPFS_ASSERT(size <= buffer_.size() - end_);
  end_ += size;
}

std::span<const std::byte> FrameReader::unread() const {
  return std::span(buffer_).subspan(begin_, end_ - begin_);
}

bool FrameReader::ready() const {
  std::span<const std::byte> bytes = unread();
  const auto frame = take_frame(bytes, most_);
  return !frame || *frame;
}

std::expected<std::optional<std::span<const std::byte>>, FrameError> FrameReader::next() {
  std::span<const std::byte> bytes = unread();
  const auto frame = take_frame(bytes, most_);
  begin_ = end_ - bytes.size();
  return frame;
}

bool append_frame(const Envelope& envelope, std::size_t most, std::string& out) {
  take_log();
  complained = false;
  const std::size_t before = out.size();
  if (!append_as_it_is(envelope, most, out)) return false;
  if (!complained) return true;
  out.resize(before);
  Envelope good = envelope;
  make_utf8(good);
  return append_as_it_is(good, most, out);
}

bool decode(std::span<const std::byte> frame, Envelope& envelope) {
  take_log();
  return envelope.ParseFromArray(frame.data(), static_cast<int>(frame.size()));
}

Envelope& MessageMemory::begin() {
  google::protobuf::ArenaOptions options;
  options.initial_block = block_.data();
  options.initial_block_size = block_.size();
  arena_.emplace(options);
  return *google::protobuf::Arena::CreateMessage<Envelope>(&*arena_);
}

void MessageMemory::end(std::size_t most) {
  const std::size_t used = arena_->SpaceAllocated();
  arena_.reset();
  if (used > most) {
    std::vector<char>().swap(block_);
  } else if (used > block_.size()) {
    block_ = std::vector<char>(used);
  }
}

}  // namespace vpfs::control
