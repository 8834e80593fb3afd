#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"

namespace vpfs {

// One thing that a policy says in status.
struct StatusField {
  // How the values that the policies of several traffic classes give become one.
  enum class Join : std::uint8_t {
    same,     // all know the same: any of them
    sum,      // integers
    largest,  // integers and durations
    every,    // booleans: true if all are
  };
  using Value = std::variant<std::int64_t, bool, Duration, std::string_view>;

  std::string_view name;  // a static text, without the unit of a duration
  Value value;            // a text is static, too
  Join join = Join::same;
};

// What a policy says of a flow or of the data server, in the order in which status shows it. What
// it does not know it leaves out.
class StatusFields {
 public:
  // REQUIRES: no field has that name; the join suits the value.
  void add(StatusField field);
  // What the policy of another traffic class says of the same.
  void join(const StatusFields& other);

  // Nothing where there is no such field of that kind.
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

// What a policy knows of how much cost the data server does in a second, and from where (a static
// text).
[[nodiscard]] StatusFields server_capacity(std::uint64_t cost_per_second, std::string_view source);

}  // namespace vpfs
