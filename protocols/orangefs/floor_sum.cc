#include "protocols/orangefs/floor_sum.h"

namespace vpfs::orangefs {
namespace {

// Sums of i and of i^2 for i from 0 to last.
Wide sum_of_numbers(Wide last) {
  return last % 2 == 0 ? last / 2 * (last + 1) : (last + 1) / 2 * last;
}
Wide sum_of_squares(Wide last) {
  const Wide numbers = sum_of_numbers(last);
  const Wide odd = 2 * last + 1;
  return numbers % 3 == 0 ? numbers / 3 * odd : odd / 3 * numbers;
}

// i from 0 to `last`.
FloorSums sums_up_to(Wide last, Wide step, Wide start, Wide divisor) {
  if (step >= divisor || start >= divisor) {
    // q(i) = whole_step * i + whole_start + the q(i) of the remainders.
    const Wide whole_step = step / divisor;
    const Wide whole_start = start / divisor;
    const FloorSums rest = sums_up_to(last, step % divisor, start % divisor, divisor);
    const Wide numbers = sum_of_numbers(last);
    const Wide squares = sum_of_squares(last);
    return {.q = whole_step * numbers + whole_start * (last + 1) + rest.q,
            .twice_i_q = 2 * (whole_step * squares + whole_start * numbers) + rest.twice_i_q,
            .q_squared = whole_step * whole_step * squares +
                         whole_start * whole_start * (last + 1) +
                         2 * whole_step * whole_start * numbers + 2 * whole_start * rest.q +
                         whole_step * rest.twice_i_q + rest.q_squared};
  }
  // Count the lattice points below the line along the other axis.
  const Wide top = (step * last + start) / divisor;
  if (top == 0) return {};
  const FloorSums turned = sums_up_to(top - 1, divisor, divisor - start - 1, step);
  FloorSums sums;
  sums.q = last * top - turned.q;
  sums.twice_i_q = top * last * (last + 1) - turned.q_squared - turned.q;
  sums.q_squared = last * top * (top + 1) - turned.twice_i_q - 2 * turned.q - sums.q;
  return sums;
}

}  // namespace

FloorSums floor_sums(std::uint64_t count, std::uint64_t step, std::uint64_t start,
                     std::uint64_t divisor) {
  if (count == 0) return {};
  return sums_up_to(count - 1, step, start, divisor);
}

}  // namespace vpfs::orangefs
