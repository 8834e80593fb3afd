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

  template <typename... Items>
  void named(std::string_view, Items&&... items) {
    (item(items), ...);
  }

 private:
  // Small numbers are as frequent as those of any size.
  template <typename T>
  requires std::is_integral_v<T>
  void item(T& value) { value = static_cast<T>(below(2) == 0 ? random_() % 4 : random_()); }
  template <typename T>
  requires std::is_enum_v<T>
  void item(T& value) { value = T{static_cast<std::underlying_type_t<T>>(random_())}; }
  void item(bool& value) { value = below(2) == 0; }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void item(Struct& value) { Struct::fields(*this, value); }
  void item(NotNegative<std::int64_t>& number) {
    number.value = static_cast<std::int64_t>(random_() >> 1);
  }
  void item(std::string& value) {
    value.resize(below(20));
    for (char& c : value) c = static_cast<char>(below(255) + 1);
  }
  void item(Aligned<std::string>& value) { item(value.text); }
  void item(Flagged<std::optional<FileOwner>>& owner) {
    if (below(2) == 0) return;
    owner.value.emplace();
    item(owner.value->uid);
    item(owner.value->gid);
  }

  [[nodiscard]] std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(random_() % bound);
  }

  std::mt19937_64& random_;
};

}  // namespace vpfs::beegfs::test
