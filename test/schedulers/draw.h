#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace vpfs {

// Random numbers of a seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  // Both ends are included.
  std::uint64_t operator()(std::uint64_t least, std::uint64_t most) {
    return least + engine_() % (most - least + 1);
  }
  bool one_in(std::uint64_t many) { return (*this)(1, many) == 1; }
  // Numbers of all sizes up to 2^bits.
  std::uint64_t any(std::uint32_t bits) { return (*this)(1, std::uint64_t{1} << (*this)(0, bits)); }
  // Weights of all sizes up to 10^decades.
  std::uint32_t weight(std::uint64_t decades) {
    return static_cast<std::uint32_t>(
        std::pow(10.0, static_cast<double>((*this)(0, decades * 10)) / 10));
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace vpfs
