#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vpfs::members {

// A coordinator that serves a part of a site's stages.
struct Member {
  std::string name;                               // other ones have others
  std::vector<std::string> stage_addresses = {};  // where stages dial it
  std::uint64_t incarnation = 0;                  // of its process; only its leader knows

  bool operator==(const Member&) const = default;
};

// Which members a site has.
struct View {
  std::uint64_t epoch = 0;  // above those before it; zero: there is none
  std::vector<Member> members = {};

  bool operator==(const View&) const = default;
};

// The member that serves the stage: the one with the largest hash of both names [Thaler and
// Ravishankar, "Using name-based mappings to increase hit rates", 1998]. So a member that leaves
// costs only its own stages another one, and one that joins takes only what is its own from then
// on. All versions compute the same. Null: the view has no member.
[[nodiscard]] const Member* owner_of(std::string_view stage, const View& view);

// Terms. Members serve with the epoch of their view as term, so a stage refuses a member that has
// not heard of a later view. Between the terms of two leaders of such a site there is room for the
// epochs of the first one.
inline constexpr std::uint64_t kEpochsOfATerm = std::uint64_t{1} << 16;
// Larger terms cannot be asked for, so that there is room for those after them.
inline constexpr std::uint64_t kLargestFirstTerm = std::uint64_t{1} << 61;
// The first term of a leader that is not below `least`. Epochs of leaders before are below it if
// `least` is above their terms.
[[nodiscard]] std::uint64_t term_of_members(std::uint64_t least);

}  // namespace vpfs::members
