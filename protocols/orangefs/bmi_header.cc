#include "protocols/orangefs/bmi_header.h"

#include <algorithm>

#include "base/byte_reader.h"

namespace vpfs::orangefs {
namespace {

bool is_known(BmiMode mode) {
  return mode == BmiMode::immediate || mode == BmiMode::unexpected || mode == BmiMode::eager ||
         mode == BmiMode::rendezvous;
}

bool could_be_magic(std::span<const std::byte> bytes) {
  std::uint32_t magic = kBmiMagic;
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), sizeof magic))) {
    if (byte != static_cast<std::byte>(magic & 0xffU)) return false;
    magic >>= 8;
  }
  return true;
}

}  // namespace

const char* describe(BmiError error) {
  switch (error) {
    case BmiError::need_more:
      return "the message is not complete";
    case BmiError::bad_magic:
      return "bad magic number in the BMI header";
    case BmiError::bad_mode:
      return "unknown mode in the BMI header";
    case BmiError::payload_too_large:
      return "payload size in the BMI header is too large";
  }
  return "unknown BMI error";
}

std::expected<BmiHeader, BmiError> decode_bmi_header(std::span<const std::byte> bytes,
                                                     std::uint64_t max_payload) {
  if (!could_be_magic(bytes)) return std::unexpected(BmiError::bad_magic);
  if (bytes.size() < kBmiHeaderSize) return std::unexpected(BmiError::need_more);
  ByteReader in(bytes.first(kBmiHeaderSize));
  in.skip(sizeof kBmiMagic);
  BmiHeader header;
  header.mode = static_cast<BmiMode>(in.u32());
  header.tag = in.u64();
  header.payload_size = in.u64();
  if (!is_known(header.mode)) return std::unexpected(BmiError::bad_mode);
  if (header.payload_size > max_payload) return std::unexpected(BmiError::payload_too_large);
  return header;
}

std::array<std::byte, kBmiHeaderSize> encode(const BmiHeader& header) {
  std::array<std::byte, kBmiHeaderSize> bytes{};
  std::size_t offset = 0;
  const auto put = [&](std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i, value >>= 8) {
      bytes[offset++] = static_cast<std::byte>(value & 0xffU);
    }
  };
  put(kBmiMagic, 4);
  put(static_cast<std::uint32_t>(header.mode), 4);
  put(header.tag, 8);
  put(header.payload_size, 8);
  return bytes;
}

}  // namespace vpfs::orangefs
