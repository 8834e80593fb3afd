#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"

namespace vpfs {

// One fact that a policy shows in status.
struct StatusField {
  // How the values of several traffic classes become one.
  enum class Join : std::uint8_t {
    same,     // all values are equal
    sum,      // integers
    largest,  // integers and durations
    every,    // booleans: true if all are
  };
  using Value = std::variant<std::int64_t, bool, Duration, std::string_view>;

  std::string_view name;  // a static text, without the unit of a duration
  Value value;            // a text is static, too
  Join join = Join::same;
};

// The facts that a policy shows about a flow or the data server, in the order of status. A policy
// leaves out what it does not know.
class StatusFields {
 public:
  // REQUIRES: no field has that name; the join suits the value.
  void add(StatusField field);
  // Adds the fields of another traffic class's policy.
  void join(const StatusFields& other);

  // Nothing: there is no field of that name and kind.
  template <typename Kind>
  [[nodiscard]] std::optional<Kind> get(std::string_view name) const {
    const StatusField* const field = find(name);
    const auto* const value = field == nullptr ? nullptr : std::get_if<Kind>(&field->value);
    return value == nullptr ? std::nullopt : std::optional<Kind>(*value);
  }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const {
    return get<std::int64_t>(name);
  }

  [[nodiscard]] bool empty() const { return fields_.empty(); }
  [[nodiscard]] auto begin() const { return fields_.begin(); }
  [[nodiscard]] auto end() const { return fields_.end(); }

 private:
  [[nodiscard]] const StatusField* find(std::string_view name) const;

  std::vector<StatusField> fields_;
};

// The fields of the data server's capacity. `source` says where it is known from; a static text.
[[nodiscard]] StatusFields server_capacity(std::uint64_t cost_per_second, std::string_view source);

}  // namespace vpfs
