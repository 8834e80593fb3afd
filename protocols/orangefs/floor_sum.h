#pragma once

#include <cstdint>

#include "base/wide.h"

// Sums over the quotients of an arithmetic progression, in logarithmic time.
namespace vpfs::orangefs {

// With q(i) = floor((step * i + start) / divisor) and i from 0 to count - 1; all modulo 2^128.
struct FloorSums {
  Wide q = 0;          // sum of q(i)
  Wide twice_i_q = 0;  // 2 * sum of i * q(i)
  Wide q_squared = 0;  // sum of q(i)^2
};

// Follows Euclid's algorithm for step and divisor, so it takes at most 130 steps.
// REQUIRES: divisor > 0; count, step, start and divisor are below 2^63.
[[nodiscard]] FloorSums floor_sums(std::uint64_t count, std::uint64_t step, std::uint64_t start,
                                   std::uint64_t divisor);

}  // namespace vpfs::orangefs
