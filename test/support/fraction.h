#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

// Exact arithmetic for tests: slow and simple.
namespace vpfs {

// A natural number of any size, least significant limb first, no zero limb on top.
class Natural {
 public:
  Natural(std::uint64_t value = 0) {
    for (; value != 0; value >>= 32) limbs_.push_back(static_cast<std::uint32_t>(value));
  }
  [[nodiscard]] std::size_t limbs() const { return limbs_.size(); }
  [[nodiscard]] std::uint64_t bits() const {
    return limbs_.empty()
               ? 0
               : limbs_.size() * 32 - static_cast<std::size_t>(std::countl_zero(limbs_.back()));
  }

  friend std::strong_ordering operator<=>(const Natural& one, const Natural& other) {
    if (one.limbs() != other.limbs()) return one.limbs() <=> other.limbs();
    return std::lexicographical_compare_three_way(one.limbs_.rbegin(), one.limbs_.rend(),
                                                  other.limbs_.rbegin(), other.limbs_.rend());
  }
  friend bool operator==(const Natural& one, const Natural& other) = default;

  friend Natural operator+(const Natural& one, const Natural& other) {
    Natural sum;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < std::max(one.limbs(), other.limbs()); ++i) {
      carry += one.limb(i) + other.limb(i);
      sum.limbs_.push_back(static_cast<std::uint32_t>(carry));
      carry >>= 32;
    }
    if (carry != 0) sum.limbs_.push_back(static_cast<std::uint32_t>(carry));
    return sum;
  }
  Natural& operator-=(const Natural& other) {  // other <= *this
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limbs(); ++i) {
      const std::uint64_t take = other.limb(i) + borrow;
      borrow = limbs_[i] < take ? 1 : 0;
      limbs_[i] = static_cast<std::uint32_t>(limbs_[i] - take);
    }
    trim();
    return *this;
  }
  friend Natural operator*(const Natural& one, const Natural& other) {
    Natural product;
    product.limbs_.resize(one.limbs() + other.limbs());
    for (std::size_t i = 0; i < one.limbs(); ++i) {
      std::uint64_t carry = 0;
      for (std::size_t j = 0; j < other.limbs() || carry != 0; ++j) {
        carry += one.limb(i) * other.limb(j) + product.limbs_[i + j];
        product.limbs_[i + j] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
    }
    product.trim();
    return product;
  }
  void double_and_add(std::uint32_t bit) {
    for (std::uint32_t& limb : limbs_) {
      const std::uint32_t carry = limb >> 31;
      limb = limb << 1 | bit;
      bit = carry;
    }
    if (bit != 0) limbs_.push_back(bit);
  }
  void halve() {
    for (std::size_t i = 0; i < limbs(); ++i) {
      limbs_[i] = static_cast<std::uint32_t>((limb(i + 1) << 32 | limb(i)) >> 1);
    }
    trim();
  }
  // Leaves the remainder in *this.
  Natural divide_by(const Natural& divisor) {
    if (*this < divisor) return 0;
    if (limbs() <= 2) {
      const std::uint64_t whole = small();
      *this = whole % divisor.small();
      return whole / divisor.small();
    }
    Natural quotient;
    std::uint64_t shift = bits() - divisor.bits();
    Natural shifted = divisor;
    for (std::uint64_t i = 0; i < shift; ++i) shifted.double_and_add(0);
    for (;; --shift) {
      const bool fits = shifted <= *this;
      quotient.double_and_add(fits ? 1 : 0);
      if (fits) *this -= shifted;
      if (shift == 0) return quotient;
      shifted.halve();
    }
  }
  [[nodiscard]] std::uint64_t small() const { return limb(1) << 32 | limb(0); }

 private:
  [[nodiscard]] std::uint64_t limb(std::size_t i) const { return i < limbs() ? limbs_[i] : 0; }
  void trim() {
    while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  }
  std::vector<std::uint32_t> limbs_;
};

inline Natural greatest_common_divisor(Natural one, Natural other) {
  while (other != 0) {
    if (one.limbs() <= 2 && other.limbs() <= 2) return std::gcd(one.small(), other.small());
    one.divide_by(other);
    std::swap(one, other);
  }
  return one;
}

// An exact rational number.
class Fraction {
 public:
  Fraction(std::int64_t value = 0)
      : negative_(value < 0), top_(static_cast<std::uint64_t>(value < 0 ? -value : value)) {}
  Fraction(Natural top, Natural bottom, bool negative = false)
      : negative_(negative && top != 0), top_(std::move(top)), bottom_(std::move(bottom)) {
    if (bottom_.limbs() > 6) return;  // for larger ones, reducing costs more than it saves
    const Natural divisor = greatest_common_divisor(top_, bottom_);
    top_ = top_.divide_by(divisor);
    bottom_ = bottom_.divide_by(divisor);
  }

  Fraction operator-() const { return {top_, bottom_, !negative_}; }
  friend Fraction operator+(const Fraction& one, const Fraction& other) {
    Natural left = one.top_ * other.bottom_;
    Natural right = other.top_ * one.bottom_;
    const Natural bottom = one.bottom_ * other.bottom_;
    if (one.negative_ == other.negative_) return {left + right, bottom, one.negative_};
    if (left < right) return {right -= left, bottom, other.negative_};
    return {left -= right, bottom, one.negative_};
  }
  friend Fraction operator-(const Fraction& one, const Fraction& other) { return one + -other; }
  friend Fraction operator*(const Fraction& one, const Fraction& other) {
    return {one.top_ * other.top_, one.bottom_ * other.bottom_, one.negative_ != other.negative_};
  }
  friend Fraction operator/(const Fraction& one, const Fraction& other) {
    return {one.top_ * other.bottom_, one.bottom_ * other.top_, one.negative_ != other.negative_};
  }
  friend std::strong_ordering operator<=>(const Fraction& one, const Fraction& other) {
    if (one.negative_ != other.negative_) {
      return one.negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
    }
    const Natural left = one.top_ * other.bottom_;
    const Natural right = other.top_ * one.bottom_;
    return one.negative_ ? right <=> left : left <=> right;
  }
  friend bool operator==(const Fraction& one, const Fraction& other) {
    return (one <=> other) == std::strong_ordering::equal;
  }
  [[nodiscard]] std::int64_t floor() const {
    Natural rest = top_;
    const auto quotient = static_cast<std::int64_t>(rest.divide_by(bottom_).small());
    return negative_ ? -quotient - (rest != 0 ? 1 : 0) : quotient;
  }

 private:
  bool negative_ = false;
  Natural top_;
  Natural bottom_ = 1;
};

}  // namespace vpfs
