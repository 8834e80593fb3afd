#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/wide.h"

namespace vpfs {

// Divides by a number that seldom changes, without a division: `inverse` is less than one below
// 2^64 / divisor and the dividend below 2^64, so their product is the quotient or one less.
class Divider {
 public:
  struct Result {
    std::uint64_t quotient;
    std::uint64_t remainder;
  };

  // REQUIRES: divisor >= 1.
  explicit Divider(std::uint64_t divisor = 1)
      : divisor_(divisor),
        inverse_(divisor == 1 ? ~std::uint64_t{0}
                              : static_cast<std::uint64_t>((Wide{1} << 64) / divisor)) {}

  [[nodiscard]] std::uint64_t divisor() const { return divisor_; }
  [[nodiscard]] Result divide(std::uint64_t dividend) const {
    auto quotient = static_cast<std::uint64_t>(Wide{dividend} * inverse_ >> 64);
    std::uint64_t remainder = dividend - quotient * divisor_;
    if (remainder >= divisor_) {
      ++quotient;
      remainder -= divisor_;
    }
    return {.quotient = quotient, .remainder = remainder};
  }

 private:
  std::uint64_t divisor_;
  std::uint64_t inverse_;
};

// How long `amount` takes at `rate` each second, rounded down; at most 2^60 ns (36 years).
[[nodiscard]] inline Duration time_for(std::uint64_t amount, const Divider& rate) {
  constexpr Wide kLongest = Wide{1} << 60;
  if (amount < std::uint64_t{1} << 34) {
    const std::uint64_t time = rate.divide(amount * kNanosecondsPerSecond).quotient;
    return Duration(static_cast<std::int64_t>(time < kLongest ? time : kLongest));
  }
  const Wide time = Wide{amount} * kNanosecondsPerSecond / rate.divisor();
  return Duration(static_cast<std::int64_t>(time < kLongest ? time : kLongest));
}

}  // namespace vpfs
