#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tools/load/settings.h"

namespace vpfs::load {

// The places of requests in one process's file, each as large as a request: which one comes next,
// and what was last written there, for verification.
//
// With `track`, no two requests use the same place at once, so a read's contents are known.
class Places {
 public:
  Places(std::uint64_t count, Pattern pattern, std::uint64_t seed, bool track);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  // The next place to use; the caller gives it back. There must be more places than requests under
  // way.
  [[nodiscard]] std::uint64_t take();
  void give_back(std::uint64_t place);

  // How many times the place was written; 0 when never, or when its contents are unknown.
  [[nodiscard]] std::uint64_t generation(std::uint64_t place) const;
  // The generation of the next write there.
  [[nodiscard]] std::uint64_t next_generation(std::uint64_t place) const;
  void written(std::uint64_t place);
  // A write failed; its data may or may not be there.
  void lost_track_of(std::uint64_t place);

  // True in `percent` of all cases.
  [[nodiscard]] bool chance(std::uint64_t percent);

 private:
  struct Place {
    std::uint32_t writes = 0;
    bool busy = false;
    bool known = false;
  };

  std::uint64_t count_;
  Pattern pattern_;
  std::mt19937_64 random_;
  std::uint64_t cursor_ = 0;
  std::vector<Place> places_;  // empty unless tracking
};

}  // namespace vpfs::load
