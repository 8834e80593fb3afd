#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>

#include "protocols/beegfs/message.h"

namespace vpfs::beegfs::test {

// An archive (body_archive.h) that fills a body with random but valid contents.
class RandomArchive {
 public:
  explicit RandomArchive(std::mt19937_64& random) : random_(random) {}

  // Half of the numbers are small.
  template <typename T>
  requires std::is_integral_v<T>
  void field(std::string_view, T& value) {
    value = static_cast<T>(below(2) == 0 ? random_() % 4 : random_());
  }
  template <typename T>
  requires std::is_enum_v<T>
  void field(std::string_view, T& value) {
    value = T{static_cast<std::underlying_type_t<T>>(random_())};
  }
  void field(std::string_view, bool& value) { value = below(2) == 0; }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void field(std::string_view, Struct& value) { Struct::fields(*this, value); }
  void count(std::string_view, std::int64_t& value) {
    value = static_cast<std::int64_t>(random_() >> 1);
  }
  void text(std::string_view, std::string& value) {
    value.resize(below(20));
    for (char& c : value) c = static_cast<char>(below(255) + 1);
  }
  void aligned_text(std::string_view name, std::string& value) { text(name, value); }
  void file_owner(std::uint16_t, std::optional<FileOwner>& value) {
    if (below(2) == 0) return;
    value.emplace();
    field({}, value->uid);
    field({}, value->gid);
  }

 private:
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(random_() % bound);
  }

  std::mt19937_64& random_;
};

}  // namespace vpfs::beegfs::test
