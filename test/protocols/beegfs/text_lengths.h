#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "protocols/beegfs/message.h"

namespace vpfs::beegfs::test {

// An archive (body_archive.h) that finds where the lengths of a message's texts are.
class TextLengths {
 public:
  template <typename... Items>
  void named(std::string_view, const Items&... items) {
    (item(items), ...);
  }

  // In the message, header included.
  [[nodiscard]] static std::vector<std::size_t> of(const Message& message) {
    TextLengths found;
    std::visit(
        [&found]<typename Body>(const Body& body) {
          if constexpr (!std::is_same_v<Body, Opaque>) Body::fields(found, body);
        },
        message.body);
    return found.offsets_;
  }

 private:
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void item(T) { offset_ += sizeof(T); }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void item(const Struct& value) { Struct::fields(*this, value); }
  template <typename T>
  void item(const NotNegative<T>& number) {
    item(number.value);
  }
  void item(const std::string& value) {
    offsets_.push_back(offset_);
    offset_ += 4 + value.size() + 1;
  }
  void item(const Aligned<const std::string>& value) {
    const std::size_t begin = offset_;
    item(value.text);
    while ((offset_ - begin) % 4 != 0) ++offset_;
  }
  void item(const Flagged<const std::optional<FileOwner>>& owner) {
    if (owner.value) offset_ += 8;
  }

  std::size_t offset_ = kMessageHeaderSize;
  std::vector<std::size_t> offsets_;
};

}  // namespace vpfs::beegfs::test
