#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace vpfs {

// Reads little-endian integers and byte runs from the front of a borrowed buffer.
//
// Errors stick: the first read past the end sets failed(), consumes nothing, and from then on every
// read returns zero or an empty run. A decoder can read a whole structure and check once.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint8_t u8() { return static_cast<std::uint8_t>(integer<1>()); }
  [[nodiscard]] std::uint16_t u16() { return static_cast<std::uint16_t>(integer<2>()); }
  [[nodiscard]] std::uint32_t u32() { return static_cast<std::uint32_t>(integer<4>()); }
  [[nodiscard]] std::uint64_t u64() { return integer<8>(); }
  [[nodiscard]] std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  [[nodiscard]] std::int64_t i64() { return static_cast<std::int64_t>(u64()); }

  // The next `size` bytes, borrowed from the buffer.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t size) {
    if (failed_ || size > bytes_.size() - offset_) {
      failed_ = true;
      return {};
    }
    const std::span<const std::byte> run = bytes_.subspan(offset_, size);
    offset_ += size;
    return run;
  }
  [[nodiscard]] std::string_view text(std::size_t size);
  void skip(std::size_t size) { (void)bytes(size); }
  // Skips to the next multiple of `alignment`, counted from the start of the buffer.
  void align(std::size_t alignment);

  void fail() { failed_ = true; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::size_t offset() const { return offset_; }
  [[nodiscard]] std::size_t remaining() const { return failed_ ? 0 : bytes_.size() - offset_; }

 private:
  template <int kSize>
  std::uint64_t integer() {
    const std::span<const std::byte> run = bytes(kSize);
    std::uint64_t value = 0;
    for (std::size_t i = run.size(); i > 0; --i) {
      value = value << 8 | std::to_integer<std::uint64_t>(run[i - 1]);
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
  bool failed_ = false;
};

}  // namespace vpfs
