#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/wide.h"

namespace vpfs {

class ByteReader;
class ByteWriter;

// What a program knows, as a tree of named values, for the program that takes its place. The two
// may be of different versions: a reader skips names that it does not know, and leaves what it has
// where a name is missing.
//
// A class names its fields once, for both directions:
//
//   template <typename Archive>
//   void archive(Archive& fields) {
//     fields("tag", tag_);
//     fields("bucket", bucket_);  // a class with such a method
//   }
//   ...
//   StateWriter(to).all_of(object);    StateReader(from).all_of(object);
class SavedState {
 public:
  using Values = std::vector<SavedState>;
  using Numbers = std::vector<std::uint64_t>;
  using Value = std::variant<std::uint64_t, std::string, Numbers, Values>;

  void set(std::string_view name, Value value) { members_.emplace_back(name, std::move(value)); }
  // Adds a list of that name, which the caller fills. Valid until the next set() or add_list().
  [[nodiscard]] Values& add_list(std::string_view name) {
    set(name, Values());
    return std::get<Values>(members_.back().second);
  }

  // Those of other kinds count as missing.
  template <typename Kind>
  [[nodiscard]] const Kind* find(std::string_view name) const {
    for (const auto& [each, value] : members_) {
      if (each == name) return std::get_if<Kind>(&value);
    }
    return nullptr;
  }
  [[nodiscard]] std::uint64_t number(std::string_view name, std::uint64_t missing = 0) const {
    const auto* const found = find<std::uint64_t>(name);
    return found == nullptr ? missing : *found;
  }
  [[nodiscard]] std::string_view text(std::string_view name) const {
    const auto* const found = find<std::string>(name);
    return found == nullptr ? std::string_view() : *found;
  }
  // Empty if it is missing.
  [[nodiscard]] const Values& list(std::string_view name) const;
  // The first of a list; an empty state if there is none.
  [[nodiscard]] const SavedState& child(std::string_view name) const;

  [[nodiscard]] std::string encode() const;
  // Reads nothing past the end, and allocates in proportion to the input.
  [[nodiscard]] static Result<SavedState> decode(std::string_view bytes);

  bool operator==(const SavedState&) const = default;

 private:
  void write(ByteWriter& out) const;
  [[nodiscard]] bool read(ByteReader& in, int depth);

  std::vector<std::pair<std::string, Value>> members_;
};

namespace saved_state {

template <typename T>
concept Number = std::integral<T> || std::is_enum_v<T>;
template <typename T>
concept Time = std::same_as<T, Duration> || std::same_as<T, TimePoint>;
template <typename T>
concept Unit = requires(T value) {
  { value.count } -> std::convertible_to<std::uint64_t>;
}
&&sizeof(T) == sizeof(std::uint64_t);
template <typename T>
concept Plain = Number<T> || Time<T> ||(Unit<T> && !Time<T>);

template <Plain T>
[[nodiscard]] std::uint64_t number_of(const T& value) {
  if constexpr (std::same_as<T, TimePoint>) {
    return static_cast<std::uint64_t>(value.time_since_epoch().count());
  } else if constexpr (std::same_as<T, Duration>) {
    return static_cast<std::uint64_t>(value.count());
  } else if constexpr (Number<T>) {
    return static_cast<std::uint64_t>(value);
  } else {
    return value.count;
  }
}
// Numbers that a smaller type cannot have lose their upper bits, so enumerations are checked by
// their owners.
template <Plain T>
void assign(T& to, std::uint64_t number) {
  if constexpr (std::same_as<T, TimePoint>) {
    to = TimePoint(Duration(static_cast<std::int64_t>(number)));
  } else if constexpr (std::same_as<T, Duration>) {
    to = Duration(static_cast<std::int64_t>(number));
  } else if constexpr (Number<T>) {
    to = static_cast<T>(number);
  } else {
    to.count = number;
  }
}

}  // namespace saved_state

class StateWriter {
 public:
  static constexpr bool kReads = false;

  explicit StateWriter(SavedState& to) : to_(to) {}

  template <typename T>
  void all_of(T& object) {
    object.archive(*this);
  }

  template <typename T>
  void operator()(std::string_view name, T& value) {
    if constexpr (saved_state::Plain<T>) {
      to_.set(name, saved_state::number_of(value));
    } else if constexpr (std::same_as<T, std::string>) {
      to_.set(name, value);
    } else if constexpr (std::same_as<T, Wide> || std::same_as<T, SignedWide>) {
      const auto wide = static_cast<Wide>(value);
      to_.set(name, SavedState::Numbers{static_cast<std::uint64_t>(wide),
                                        static_cast<std::uint64_t>(wide >> 64)});
    } else {
      SavedState::Values& list = to_.add_list(name);
      StateWriter(list.emplace_back()).all_of(value);
    }
  }
  template <saved_state::Plain T>
  void operator()(std::string_view name, std::optional<T>& value) {
    if (value) to_.set(name, saved_state::number_of(*value));
  }
  template <saved_state::Plain T, std::size_t kSize>
  void operator()(std::string_view name, std::array<T, kSize>& values) {
    run(name, std::span<const T>(values));
  }
  template <saved_state::Plain T>
  void operator()(std::string_view name, std::vector<T>& values) {
    run(name, std::span<const T>(values));
  }

 private:
  template <typename T>
  void run(std::string_view name, std::span<const T> values) {
    SavedState::Numbers numbers;
    numbers.reserve(values.size());
    for (const T& each : values) numbers.push_back(saved_state::number_of(each));
    to_.set(name, std::move(numbers));
  }

  SavedState& to_;
};

class StateReader {
 public:
  static constexpr bool kReads = true;

  explicit StateReader(const SavedState& from) : from_(from) {}

  template <typename T>
  void all_of(T& object) {
    object.archive(*this);
  }

  template <typename T>
  void operator()(std::string_view name, T& value) {
    if constexpr (saved_state::Plain<T>) {
      const auto* const found = from_.find<std::uint64_t>(name);
      if (found != nullptr) saved_state::assign(value, *found);
    } else if constexpr (std::same_as<T, std::string>) {
      const auto* const found = from_.find<std::string>(name);
      if (found != nullptr) value = *found;
    } else if constexpr (std::same_as<T, Wide> || std::same_as<T, SignedWide>) {
      const auto* const found = from_.find<SavedState::Numbers>(name);
      if (found == nullptr || found->size() != 2) return;
      value = static_cast<T>(Wide{(*found)[1]} << 64 | (*found)[0]);
    } else {
      const auto* const found = from_.find<SavedState::Values>(name);
      if (found != nullptr && !found->empty()) StateReader(found->front()).all_of(value);
    }
  }
  template <saved_state::Plain T>
  void operator()(std::string_view name, std::optional<T>& value) {
    const auto* const found = from_.find<std::uint64_t>(name);
    if (found != nullptr) saved_state::assign(value.emplace(), *found);
  }
  // An array of another size counts as missing.
  template <saved_state::Plain T, std::size_t kSize>
  void operator()(std::string_view name, std::array<T, kSize>& values) {
    const auto* const found = from_.find<SavedState::Numbers>(name);
    if (found == nullptr || found->size() != kSize) return;
    for (std::size_t i = 0; i < kSize; ++i) saved_state::assign(values[i], (*found)[i]);
  }
  template <saved_state::Plain T>
  void operator()(std::string_view name, std::vector<T>& values) {
    const auto* const found = from_.find<SavedState::Numbers>(name);
    if (found == nullptr) return;
    values.resize(found->size());
    for (std::size_t i = 0; i < values.size(); ++i) saved_state::assign(values[i], (*found)[i]);
  }

 private:
  const SavedState& from_;
};

}  // namespace vpfs
