#include "control/members/view.h"

namespace vpfs::members {
namespace {

// FNV-1a [Fowler, Noll, Vo].
std::uint64_t add(std::uint64_t hash, std::string_view text) {
  for (const char each : text) {
    hash ^= static_cast<unsigned char>(each);
    hash *= 0x100000001b3;
  }
  return hash;
}

// The finalizer of SplitMix64 [Steele, Lea, Flood 2014]: FNV's upper bits hardly depend on the last
// characters.
std::uint64_t mix(std::uint64_t hash) {
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

std::uint64_t weight(std::string_view member, std::string_view stage) {
  constexpr std::uint64_t kBasis = 0xcbf29ce484222325;
  constexpr std::string_view kBetween("\0", 1);
  return mix(add(add(add(kBasis, member), kBetween), stage));
}

}  // namespace

const Member* owner_of(std::string_view stage, const View& view) {
  const Member* owner = nullptr;
  std::uint64_t most = 0;
  for (const Member& each : view.members) {
    const std::uint64_t own = weight(each.name, stage);
    if (owner != nullptr && (own < most || (own == most && each.name > owner->name))) continue;
    owner = &each;
    most = own;
  }
  return owner;
}

std::uint64_t term_of_members(std::uint64_t least) {
  return (least + kEpochsOfATerm - 1) / kEpochsOfATerm * kEpochsOfATerm;
}

}  // namespace vpfs::members
