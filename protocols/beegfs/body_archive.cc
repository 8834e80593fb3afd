#include "protocols/beegfs/body_archive.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::beegfs {
namespace {

constexpr std::size_t kTextAlignment = 4;

std::string quoted(std::string_view value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xf]};
    }
  }
  return text += '"';
}

}  // namespace

void BodyDecoder::fail(MessageError error) {
  if (!error_) error_ = error;
}

std::optional<MessageError> BodyDecoder::error() const {
  return in_.failed() ? MessageError::truncated : error_;
}

void BodyDecoder::field(std::string_view, bool& value) {
  const std::uint8_t byte = in_.u8();
  if (byte > 1) fail(MessageError::bad_value);
  value = byte != 0;
}

void BodyDecoder::count(std::string_view, std::int64_t& value) {
  value = in_.i64();
  if (value < 0) fail(MessageError::bad_value);
}

void BodyDecoder::aligned_text(std::string_view, std::string& value) {
  read_text(value, kTextAlignment);
}

void BodyDecoder::read_text(std::string& value, std::size_t alignment) {
  const std::size_t begin = in_.offset();
  value = in_.text(in_.u32());
  if (value.contains('\0') || in_.u8() != 0) fail(MessageError::bad_text);
  const std::size_t past = (in_.offset() - begin) % alignment;
  if (past == 0) return;
  const auto padding = in_.bytes(alignment - past);
  const bool zeros = std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; });
  if (!zeros) fail(MessageError::bad_text);
}

void BodyDecoder::file_owner(std::uint16_t flag, std::optional<FileOwner>& value) {
  if ((feature_flags_ & flag) == 0) return;
  value.emplace();
  value->uid = in_.u32();
  value->gid = in_.u32();
}

void BodyEncoder::text(std::string_view, const std::string& value) {
  VPFS_ASSERT(value.size() <= kMaxMessageSize);
  out_.u32(static_cast<std::uint32_t>(value.size()));
  out_.text(value);
  out_.u8(0);
}

void BodyEncoder::aligned_text(std::string_view name, const std::string& value) {
  const std::size_t begin = out_.offset();
  text(name, value);
  const std::size_t past = (out_.offset() - begin) % kTextAlignment;
  if (past != 0) out_.zeros(kTextAlignment - past);
}

void BodyEncoder::file_owner(std::uint16_t flag, const std::optional<FileOwner>& value) {
  if (!value) {
    feature_flags_ = static_cast<std::uint16_t>(feature_flags_ & ~flag);
    return;
  }
  feature_flags_ = static_cast<std::uint16_t>(feature_flags_ | flag);
  out_.u32(value->uid);
  out_.u32(value->gid);
}

void BodyPrinter::print(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += ' ';
  text_.append(name).append("=").append(value);
}

void BodyPrinter::text(std::string_view name, const std::string& value) {
  print(name, quoted(value));
}

void BodyPrinter::file_owner(std::uint16_t, const std::optional<FileOwner>& value) {
  if (!value) return;
  field("file_uid", value->uid);
  field("file_gid", value->gid);
}

}  // namespace vpfs::beegfs
