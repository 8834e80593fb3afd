#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace vpfs::stage {

enum class ProblemCode : std::uint8_t { invalid, not_found, exists, unavailable };

struct BookProblem {
  ProblemCode code = ProblemCode::invalid;
  std::string place;  // "rate", "COND:7", "NAME", "weekly.rate" of a set's rule; may be empty
  std::string text;

  bool operator==(const BookProblem&) const = default;
};

[[nodiscard]] inline BookProblem problem(ProblemCode code, std::string place, std::string text) {
  return {.code = code, .place = std::move(place), .text = std::move(text)};
}
[[nodiscard]] inline BookProblem invalid(std::string place, std::string text) {
  return problem(ProblemCode::invalid, std::move(place), std::move(text));
}

}  // namespace vpfs::stage
