#pragma once

#include <string>
#include <string_view>

#include "protocols/orangefs/wire_archive.h"

namespace vpfs::orangefs {

// The archive that writes "name=value" for every field, for people (wire_archive.h).
class WirePrinter {
 public:
  static constexpr bool kDecodes = false;

  // `names` is the source text of the items.
  template <typename... Items>
  void named(std::string_view names, const Items&... items) {
    (print(take_field_name(names), items), ...);
  }
  void fail(DecodeError) {}

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void print(std::string_view, const Pad4&) {}
  void print(std::string_view, const Align8&) {}
  template <typename... Vectors>
  void print(std::string_view name, const List<Vectors...>& lists) {
    std::string_view names = inside_wrapper(name);
    std::apply([&](const auto&... vectors) { (print(take_field_name(names), vectors), ...); },
               lists.vectors);
  }
  template <typename Vector>
  void print(std::string_view name, const Array<Vector>& items) {
    std::string_view names = inside_wrapper(name);
    print(take_field_name(names), items.items);
  }
  template <typename Vector>
  void print(std::string_view name, const Payload<Vector>& run) {
    std::string_view names = inside_wrapper(name);
    print(take_field_name(names), run.bytes);
  }
  template <typename T>
  void print(std::string_view name, const Keyval<T>& value) {
    print(inside_wrapper(name), value.items);
  }
  template <typename T>
  void print(std::string_view name, const T& value) {
    begin(name);
    show(value);
  }

  // Writes "name=", after a space unless the text is empty.
  void begin(std::string_view name);
  void open(char bracket);
  void close(char bracket);

  template <typename T>
  requires std::is_integral_v<T>
  void show(T value) { text_ += std::to_string(value); }
  template <typename T>
  requires std::is_enum_v<T>
  void show(T value) { text_ += std::to_string(static_cast<std::underlying_type_t<T>>(value)); }
  void show(const std::string& value) { append_quoted(text_, value); }
  void show(const std::vector<std::byte>& value);
  template <typename T>
  void show(const std::vector<T>& items) {
    open('[');
    for (const T& element : items) print({}, element);
    close(']');
  }
  template <typename T>
  requires std::is_class_v<T>
  void show(const T& value) {
    open('{');
    fields(*this, value);
    close('}');
  }

  std::string text_;
};

}  // namespace vpfs::orangefs
