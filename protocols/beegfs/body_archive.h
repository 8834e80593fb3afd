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
#include "protocols/beegfs/body_wrappers.h"
#include "protocols/beegfs/message.h"

// The archives for the bodies of messages (protocols/fields.h). Internal to protocols/beegfs.
namespace vpfs::beegfs {

inline constexpr std::size_t kTextAlignment = 4;

// Fills in a body. Errors stick; the first one counts.
class BodyDecoder {
 public:
  BodyDecoder(std::span<const std::byte> body, std::uint16_t feature_flags)
      : in_(body), feature_flags_(feature_flags) {}

  template <typename... Items>
  void named(std::string_view, Items&&... items) {
    (item(items), ...);
  }

  // The bytes after the last decoded field.
  [[nodiscard]] std::span<const std::byte> rest() { return in_.bytes(in_.remaining()); }
  [[nodiscard]] std::optional<MessageError> error() const;

 private:
  void item(std::uint16_t& value) { value = in_.u16(); }
  void item(std::uint32_t& value) { value = in_.u32(); }
  void item(std::int32_t& value) { value = in_.i32(); }
  void item(std::uint64_t& value) { value = in_.u64(); }
  void item(std::int64_t& value) { value = in_.i64(); }
  void item(NodeType& value) { value = NodeType{in_.u32()}; }
  void item(OpsError& value) { value = OpsError{in_.i32()}; }
  void item(bool& value);
  template <typename Struct>
  requires std::is_class_v<Struct>
  void item(Struct& value) { Struct::fields(*this, value); }
  void item(NotNegative<std::int64_t>& number);
  void item(std::string& value) { read_text(value, 1); }
  void item(Aligned<std::string>& value) { read_text(value.text, kTextAlignment); }
  void item(Flagged<std::optional<FileOwner>>& owner);

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

  template <typename... Items>
  void named(std::string_view, const Items&... items) {
    (item(items), ...);
  }

  // With the flags that say which fields are there.
  [[nodiscard]] std::uint16_t feature_flags() const { return feature_flags_; }

 private:
  void item(std::uint16_t value) { out_.u16(value); }
  void item(std::uint32_t value) { out_.u32(value); }
  void item(std::int32_t value) { out_.i32(value); }
  void item(std::uint64_t value) { out_.u64(value); }
  void item(std::int64_t value) { out_.i64(value); }
  void item(NodeType value) { out_.u32(static_cast<std::uint32_t>(value)); }
  void item(OpsError value) { out_.i32(static_cast<std::int32_t>(value)); }
  void item(bool value) { out_.u8(value ? 1 : 0); }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void item(const Struct& value) { Struct::fields(*this, value); }
  void item(const NotNegative<const std::int64_t>& number) { out_.i64(number.value); }
  void item(const std::string& value);
  void item(const Aligned<const std::string>& value);
  void item(const Flagged<const std::optional<FileOwner>>& owner);

  ByteWriter out_;
  std::uint16_t feature_flags_;
};

// Writes "name=value" for every field, for people.
class BodyPrinter {
 public:
  // `names` is the source text of the items.
  template <typename... Items>
  void named(std::string_view names, const Items&... items) {
    (print(take_field_name(names), items), ...);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  template <typename T>
  requires std::is_integral_v<T>
  void print(std::string_view name, T value) {
    begin(name);
    text_ += std::to_string(value);
  }
  template <typename T>
  requires std::is_enum_v<T>
  void print(std::string_view name, T value) {
    print(name, static_cast<std::underlying_type_t<T>>(value));
  }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void print(std::string_view, const Struct& value) { Struct::fields(*this, value); }
  void print(std::string_view name, const std::string& value) {
    begin(name);
    append_quoted(text_, value);
  }
  template <typename T>
  void print(std::string_view name, const NotNegative<T>& number) {
    print(inside(name), number.value);
  }
  template <typename T>
  void print(std::string_view name, const Aligned<T>& value) {
    print(inside(name), value.text);
  }
  void print(std::string_view name, const Flagged<const std::optional<FileOwner>>& owner);
  static std::string_view inside(std::string_view name) {
    name = inside_wrapper(name);
    return take_field_name(name);
  }
  void begin(std::string_view name);

  std::string text_;
};

}  // namespace vpfs::beegfs
