#include "protocols/beegfs/body_archive.h"

#include <algorithm>

#include "base/check.h"

namespace vpfs::beegfs {

void BodyDecoder::fail(MessageError error) {
  if (!error_) error_ = error;
}

std::optional<MessageError> BodyDecoder::error() const {
  return in_.failed() ? MessageError::truncated : error_;
}

void BodyDecoder::item(bool& value) {
  const std::uint8_t byte = in_.u8();
  if (byte > 1) fail(MessageError::bad_value);
  value = byte != 0;
}

void BodyDecoder::item(NotNegative<std::int64_t>& number) {
  number.value = in_.i64();
  if (number.value < 0) fail(MessageError::bad_value);
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

void BodyDecoder::item(Flagged<std::optional<FileOwner>>& owner) {
  if ((feature_flags_ & owner.flag) == 0) return;
  owner.value.emplace();
  owner.value->uid = in_.u32();
  owner.value->gid = in_.u32();
}

void BodyEncoder::item(const std::string& value) {
  VPFS_ASSERT(value.size() <= kMaxMessageSize);
  out_.u32(static_cast<std::uint32_t>(value.size()));
  out_.text(value);
  out_.u8(0);
}

void BodyEncoder::item(const Aligned<const std::string>& value) {
  const std::size_t begin = out_.offset();
  item(value.text);
  const std::size_t past = (out_.offset() - begin) % kTextAlignment;
  if (past != 0) out_.zeros(kTextAlignment - past);
}

void BodyEncoder::item(const Flagged<const std::optional<FileOwner>>& owner) {
  if (!owner.value) {
    feature_flags_ = static_cast<std::uint16_t>(feature_flags_ & ~owner.flag);
    return;
  }
  feature_flags_ = static_cast<std::uint16_t>(feature_flags_ | owner.flag);
  out_.u32(owner.value->uid);
  out_.u32(owner.value->gid);
}

void BodyPrinter::begin(std::string_view name) {
  if (!text_.empty()) text_ += ' ';
  text_.append(name).append("=");
}

void BodyPrinter::print(std::string_view, const Flagged<const std::optional<FileOwner>>& owner) {
  if (!owner.value) return;
  print("file_uid", owner.value->uid);
  print("file_gid", owner.value->gid);
}

}  // namespace vpfs::beegfs
