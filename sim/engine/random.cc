#include "sim/engine/random.h"

#include <bit>

#include "base/wide.h"

namespace vpfs::sim {
namespace {

// A step of splitmix64 (Steele, Lea and Flood, 2014), which makes the four words of the state from
// one.
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t& state) {
  state += kGolden;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

constexpr std::uint64_t kLn2 = 0xb17217f7;  // the natural logarithm of 2, in units of 2^-32

// The negative binary logarithm of u / 2^64, in units of 2^-32. Each squaring of the mantissa gives
// one more bit. REQUIRES: u > 0.
std::uint64_t negative_log2(std::uint64_t u) {
  constexpr int kBits = 32;
  const int zeros = std::countl_zero(u);
  std::uint64_t mantissa = u << zeros;  // from 1 to 2, in units of 2^-63
  std::uint64_t fraction = 0;
  for (int bit = 0; bit < kBits; ++bit) {
    const Wide square = Wide{mantissa} * mantissa >> 63;
    const bool is_two = square >> 64 != 0;
    fraction = fraction << 1 | (is_two ? 1 : 0);
    mantissa = static_cast<std::uint64_t>(is_two ? square >> 1 : square);
  }
  return (static_cast<std::uint64_t>(zeros + 1) << kBits) - fraction;
}

}  // namespace

Random::Random(std::uint64_t seed) : Random(seed, 0) {}

Random::Random(std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t other = stream;
  std::uint64_t state = seed ^ (stream == 0 ? 0 : mix(other));
  for (std::uint64_t& word : state_) word = mix(state);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

// The upper word of a product is uniform except for a few lower words, which are drawn again
// (Lemire, 2019).
std::uint64_t Random::below(std::uint64_t bound) {
  Wide product = Wide{next()} * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t refused = -bound % bound;
    while (static_cast<std::uint64_t>(product) < refused) product = Wide{next()} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

Duration Random::exponential(Duration mean) {
  const std::uint64_t u = next() | 1;  // never zero
  const Wide nats = Wide{negative_log2(u)} * kLn2 >> 32;
  return Duration(static_cast<std::int64_t>(nats * static_cast<std::uint64_t>(mean.count()) >> 32));
}

}  // namespace vpfs::sim
