#include "protocols/orangefs/wire_archive.h"

namespace vpfs::orangefs {
namespace {

// How many bytes `size` lacks to a multiple of 8.
std::size_t padding8(std::size_t size) {
  return (8 - size % 8) % 8;
}

}  // namespace

std::string_view WireDecoder::text() {
  const std::uint32_t size = count(1);
  if (size == 0) {
    pad(4);
    return {};
  }
  const std::string_view found = in_.text(size);
  // Servers do not look at the byte behind it. A request that they understand has to be held.
  pad(1 + padding8(std::size_t{4} + size + 1));
  return failed() ? std::string_view() : found;
}

std::string_view WireDecoder::keyval_text() {
  const std::uint32_t size = count(1);
  const std::string_view found = in_.text(size);
  pad(padding8(std::size_t{4} + size));
  return failed() ? std::string_view() : found;
}

std::uint32_t WireDecoder::count(std::size_t min_element_size) {
  if (trace_ != nullptr) trace_->lengths.push_back({.offset = in_.offset(), .size = 4});
  const std::uint32_t size = in_.u32();
  if (size > in_.remaining() / min_element_size) {
    fail(DecodeError::truncated);
    return 0;
  }
  return size;
}

void WireDecoder::pad(std::size_t size) {
  if (trace_ != nullptr && size > 0) trace_->pads.push_back({.offset = in_.offset(), .size = size});
  in_.skip(size);
}

std::expected<void, DecodeError> WireDecoder::finish() const {
  if (in_.failed()) return std::unexpected(error_);
  if (in_.remaining() != 0) return std::unexpected(DecodeError::trailing_bytes);
  return {};
}

void WireEncoder::item(const std::string& value) {
  count(value.size());
  out_.text(value);
  out_.zeros(1 + padding8(4 + value.size() + 1));
}

void WireEncoder::keyval_text(std::string_view value) {
  count(value.size());
  out_.text(value);
  out_.zeros(padding8(4 + value.size()));
}

}  // namespace vpfs::orangefs
