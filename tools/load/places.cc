#include "tools/load/places.h"

namespace vpfs::load {

Places::Places(std::uint64_t count, Pattern pattern, std::uint64_t seed, bool track)
    : count_(count), pattern_(pattern), random_(seed), places_(track ? count : 0) {}

std::uint64_t Places::take() {
  for (;;) {
    std::uint64_t place = 0;
    if (pattern_ == Pattern::random) {
      place = random_() % count_;
    } else {
      place = cursor_;
      cursor_ = cursor_ + 1 == count_ ? 0 : cursor_ + 1;
    }
    if (places_.empty()) return place;
    if (!places_[place].busy) {
      places_[place].busy = true;
      return place;
    }
  }
}

void Places::give_back(std::uint64_t place) {
  if (!places_.empty()) places_[place].busy = false;
}

std::uint64_t Places::generation(std::uint64_t place) const {
  return places_[place].known ? places_[place].writes : 0;
}

std::uint64_t Places::next_generation(std::uint64_t place) const {
  return places_[place].writes + std::uint64_t{1};
}

void Places::written(std::uint64_t place) {
  if (places_.empty()) return;
  ++places_[place].writes;
  places_[place].known = true;
}

void Places::lost_track_of(std::uint64_t place) {
  if (places_.empty()) return;
  ++places_[place].writes;
  places_[place].known = false;
}

bool Places::chance(std::uint64_t percent) {
  if (percent == 0 || percent >= 100) return percent != 0;
  return random_() % 100 < percent;
}

}  // namespace vpfs::load
