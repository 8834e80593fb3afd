#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vpfs {

// Appends little-endian integers and byte runs to a borrowed vector. Alignment counts from where
// the writer began.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out), start_(out.size()) {}

  void u8(std::uint8_t value) { integer<1>(value); }
  void u16(std::uint16_t value) { integer<2>(value); }
  void u32(std::uint32_t value) { integer<4>(value); }
  void u64(std::uint64_t value) { integer<8>(value); }
  void i32(std::int32_t value) { u32(static_cast<std::uint32_t>(value)); }
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }

  void bytes(std::span<const std::byte> run) { out_.insert(out_.end(), run.begin(), run.end()); }
  void text(std::string_view run) { bytes(std::as_bytes(std::span(run))); }
  void zeros(std::size_t size) { out_.resize(out_.size() + size); }
  void align(std::size_t alignment) {
    const std::size_t past = offset() % alignment;
    if (past != 0) zeros(alignment - past);
  }
  [[nodiscard]] std::size_t offset() const { return out_.size() - start_; }

 private:
  template <int kSize>
  void integer(std::uint64_t value) {
    for (int i = 0; i < kSize; ++i) {
      out_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xffU));
    }
  }

  std::vector<std::byte>& out_;
  std::size_t start_;
};

}  // namespace vpfs
