#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "protocols/beegfs/message.h"

// The archives that the fields() of bodies.h are given. All have the same functions:
//
//   field         an integer, an enumerator, a bool of one byte, or a struct with fields()
//   count         an integer that must not be negative
//   text          u32 length, bytes, a NUL that does not count
//   aligned_text  the same, and zeros up to a multiple of 4 from its beginning
//   file_owner    two integers, there if a feature flag of the message is set
//
// Internal to protocols/beegfs.
namespace vpfs::beegfs {

// Fills in a body. Errors stick; the first one counts.
class BodyDecoder {
 public:
  BodyDecoder(std::span<const std::byte> body, std::uint16_t feature_flags)
      : in_(body), feature_flags_(feature_flags) {}

  void field(std::string_view, std::uint16_t& value) { value = in_.u16(); }
  void field(std::string_view, std::uint32_t& value) { value = in_.u32(); }
  void field(std::string_view, std::int32_t& value) { value = in_.i32(); }
  void field(std::string_view, std::uint64_t& value) { value = in_.u64(); }
  void field(std::string_view, std::int64_t& value) { value = in_.i64(); }
  void field(std::string_view, NodeType& value) { value = NodeType{in_.u32()}; }
  void field(std::string_view, OpsError& value) { value = OpsError{in_.i32()}; }
  void field(std::string_view, bool& value);
  template <typename Struct>
  requires std::is_class_v<Struct>
  void field(std::string_view, Struct& value) { Struct::fields(*this, value); }
  void count(std::string_view, std::int64_t& value);
  void text(std::string_view, std::string& value) { read_text(value, 1); }
  void aligned_text(std::string_view, std::string& value);
  void file_owner(std::uint16_t flag, std::optional<FileOwner>& value);

  // The bytes after the last decoded field.
  [[nodiscard]] std::span<const std::byte> rest() { return in_.bytes(in_.remaining()); }
  [[nodiscard]] std::optional<MessageError> error() const;

 private:
  void read_text(std::string& value, std::size_t alignment);
  void fail(MessageError error);

  ByteReader in_;
  std::uint16_t feature_flags_;
  std::optional<MessageError> error_;
};

// Appends a body to a vector.
class BodyEncoder {
 public:
  BodyEncoder(std::vector<std::byte>& out, std::uint16_t feature_flags)
      : out_(out), feature_flags_(feature_flags) {}

  void field(std::string_view, std::uint16_t value) { out_.u16(value); }
  void field(std::string_view, std::uint32_t value) { out_.u32(value); }
  void field(std::string_view, std::int32_t value) { out_.i32(value); }
  void field(std::string_view, std::uint64_t value) { out_.u64(value); }
  void field(std::string_view, std::int64_t value) { out_.i64(value); }
  void field(std::string_view, NodeType value) { out_.u32(static_cast<std::uint32_t>(value)); }
  void field(std::string_view, OpsError value) { out_.i32(static_cast<std::int32_t>(value)); }
  void field(std::string_view, bool value) { out_.u8(value ? 1 : 0); }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void field(std::string_view, const Struct& value) { Struct::fields(*this, value); }
  void count(std::string_view, std::int64_t value) { out_.i64(value); }
  void text(std::string_view, const std::string& value);
  void aligned_text(std::string_view name, const std::string& value);
  void file_owner(std::uint16_t flag, const std::optional<FileOwner>& value);

  // With the flags that say which fields are there.
  [[nodiscard]] std::uint16_t feature_flags() const { return feature_flags_; }

 private:
  ByteWriter out_;
  std::uint16_t feature_flags_;
};

// Writes "name=value" for every field, for people.
class BodyPrinter {
 public:
  template <typename T>
  requires std::is_integral_v<T>
  void field(std::string_view name, T value) { print(name, std::to_string(value)); }
  template <typename T>
  requires std::is_enum_v<T>
  void field(std::string_view name, T value) {
    field(name, static_cast<std::underlying_type_t<T>>(value));
  }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void field(std::string_view, const Struct& value) { Struct::fields(*this, value); }
  void count(std::string_view name, std::int64_t value) { field(name, value); }
  void text(std::string_view name, const std::string& value);
  void aligned_text(std::string_view name, const std::string& value) { text(name, value); }
  void file_owner(std::uint16_t flag, const std::optional<FileOwner>& value);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void print(std::string_view name, std::string_view value);

  std::string text_;
};

}  // namespace vpfs::beegfs
