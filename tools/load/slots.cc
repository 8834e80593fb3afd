#include "tools/load/slots.h"

namespace vpfs::load {

Slots::Slots(std::uint64_t count, Pattern pattern, std::uint64_t seed, bool track)
    : count_(count), pattern_(pattern), random_(seed), slots_(track ? count : 0) {}

std::uint64_t Slots::take() {
  for (;;) {
    std::uint64_t slot = 0;
    if (pattern_ == Pattern::random) {
      slot = random_() % count_;
    } else {
      slot = cursor_;
      cursor_ = cursor_ + 1 == count_ ? 0 : cursor_ + 1;
    }
    if (slots_.empty()) return slot;
    if (!slots_[slot].busy) {
      slots_[slot].busy = true;
      return slot;
    }
  }
}

void Slots::give_back(std::uint64_t slot) {
  if (!slots_.empty()) slots_[slot].busy = false;
}

std::uint64_t Slots::generation(std::uint64_t slot) const {
  return slots_[slot].known ? slots_[slot].writes : 0;
}

std::uint64_t Slots::next_generation(std::uint64_t slot) const {
  return slots_[slot].writes + std::uint64_t{1};
}

void Slots::written(std::uint64_t slot) {
  if (slots_.empty()) return;
  ++slots_[slot].writes;
  slots_[slot].known = true;
}

void Slots::lost_track_of(std::uint64_t slot) {
  if (slots_.empty()) return;
  ++slots_[slot].writes;
  slots_[slot].known = false;
}

bool Slots::chance(std::uint64_t percent) {
  if (percent == 0 || percent >= 100) return percent != 0;
  return random_() % 100 < percent;
}

}  // namespace vpfs::load
