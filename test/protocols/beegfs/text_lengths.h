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

// An archive (body_archive.h) that finds where the lengths of a message's texts stand.
class TextLengths {
 public:
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void field(std::string_view, T) {
    offset_ += sizeof(T);
  }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void field(std::string_view, const Struct& value) { Struct::fields(*this, value); }
  void count(std::string_view name, std::int64_t value) { field(name, value); }
  void text(std::string_view, const std::string& value) {
    offsets_.push_back(offset_);
    offset_ += 4 + value.size() + 1;
  }
  void aligned_text(std::string_view name, const std::string& value) {
    const std::size_t begin = offset_;
    text(name, value);
    while ((offset_ - begin) % 4 != 0) ++offset_;
  }
  void file_owner(std::uint16_t, const std::optional<FileOwner>& value) {
    if (value) offset_ += 8;
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
  std::size_t offset_ = kMessageHeaderSize;
  std::vector<std::size_t> offsets_;
};

}  // namespace vpfs::beegfs::test
