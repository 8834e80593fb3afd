#pragma once

#include <array>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "protocols/orangefs/wire_archive.h"

namespace vpfs::orangefs::test {

// An archive that fills a structure with random but valid contents. failed() tells that the draws
// do not fit together; then try again.
class RandomArchive {
 public:
  static constexpr bool kDecodes = true;

  explicit RandomArchive(std::mt19937_64& random) : random_(random) {}

  template <typename... Items>
  void operator()(Items&&... items) {
    (item(items), ...);
  }
  template <typename... Items>
  void named(std::string_view, Items&&... items) {
    (item(items), ...);
  }

  [[nodiscard]] std::uint32_t count(std::size_t) { return below(4); }
  // Serves the only reader of a bare text: the name of a distribution.
  [[nodiscard]] std::string_view text() {
    static constexpr std::array<std::string_view, 4> kNames = {"simple_stripe", "basic_dist",
                                                               "twod_stripe", "varstrip_dist"};
    return kNames[below(4)];
  }
  void fail(DecodeError) { failed_ = true; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(random_() % bound);
  }
  // Half of the numbers are small.
  template <typename T>
  void integer(T& value) {
    value = static_cast<T>(below(2) == 0 ? random_() % 4 : random_());
  }
  [[nodiscard]] std::string random_text() {
    std::string text(below(20), '\0');
    for (char& c : text) c = static_cast<char>(random_());
    return text;
  }

  void item(std::uint32_t& value) { integer(value); }
  void item(std::int32_t& value) { integer(value); }
  void item(std::uint64_t& value) { integer(value); }
  void item(std::int64_t& value) { integer(value); }
  void item(IoType& value) { value = below(2) == 0 ? IoType::read : IoType::write; }
  template <typename E>
  requires std::is_enum_v<E>
  void item(E& value) {
    value = static_cast<E>(below(2) == 0 ? 1U << below(6) : static_cast<std::uint32_t>(random_()));
  }
  void item(std::string& value) { value = random_text(); }
  void item(const Pad4&) {}
  void item(const Align8&) {}
  void item(Keyval<std::string>& value) { value.items = random_text(); }
  template <typename... Vectors>
  void item(List<Vectors...>& lists) {
    const std::uint32_t size = count(1);
    std::apply([&](auto&... vectors) { (elements(vectors, size), ...); }, lists.vectors);
  }
  template <typename Vector>
  void item(Array<Vector>& items) {
    constexpr std::uint64_t kMost = 256;
    if (items.count > kMost) return fail(DecodeError::truncated);
    elements(items.items, items.count);
  }
  // Another field has the size; fix_size() below sets it.
  template <typename Vector>
  void item(Payload<Vector>& run) {
    elements(run.bytes, below(100));
  }
  template <typename T>
  requires std::is_class_v<T>
  void item(T& value) { fields(*this, value); }

  template <typename T>
  void elements(std::vector<T>& items, std::uint64_t size) {
    items.resize(static_cast<std::size_t>(size));
    for (T& element : items) item(element);
  }
  void elements(std::vector<std::byte>& items, std::uint64_t size) {
    items.resize(static_cast<std::size_t>(size));
    for (std::byte& element : items) element = static_cast<std::byte>(random_());
  }
  template <typename V>
  void elements(Keyval<V>& items, std::uint64_t size) {
    items.items.resize(static_cast<std::size_t>(size));
    for (std::string& element : items.items) element = random_text();
  }

  std::mt19937_64& random_;
  bool failed_ = false;
};

template <typename T>
void fix_size(T&) {}
inline void fix_size(SmallIoRequest& io) {
  if (io.io_type == IoType::write) io.total_bytes = static_cast<std::int64_t>(io.data.size());
}
inline void fix_size(SmallIoResponse& io) {
  if (io.io_type == IoType::read) io.result_size = static_cast<std::int64_t>(io.data.size());
}

// A random T.
template <typename T>
[[nodiscard]] T random_struct(std::mt19937_64& random) {
  for (;;) {
    T value;
    RandomArchive archive(random);
    archive(value);
    if (archive.failed()) continue;
    fix_size(value);
    return value;
  }
}

}  // namespace vpfs::orangefs::test
