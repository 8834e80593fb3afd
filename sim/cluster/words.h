#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/config_reader.h"
#include "sim/cluster/network/class_policy.h"
#include "sim/cluster/placement/batch.h"
#include "sim/cluster/placement/data_place.h"
#include "sim/cluster/placement/profile.h"

namespace vpfs::sim {

// A choice as configurations name it.
template <typename Choice>
struct Word {
  std::string_view name;
  Choice value;
};

inline constexpr std::array kClassWords = {Word{"none", ClassPolicy::Kind::none},
                                           Word{"apportioned", ClassPolicy::Kind::apportioned},
                                           Word{"priority", ClassPolicy::Kind::priority}};
inline constexpr std::array kSharingWords = {Word{"max_min", Sharing::max_min},
                                             Word{"equal", Sharing::equal}};
inline constexpr std::array kSizeWords = {Word{"equal", MessageSizes::equal},
                                          Word{"mixed", MessageSizes::mixed}};
inline constexpr std::array kDataWords = {
    Word{"internal", Batch::Data::internal}, Word{"external", Batch::Data::external},
    Word{"cache", Batch::Data::cache}, Word{"central", Batch::Data::central},
    Word{"shared", Batch::Data::shared}};
inline constexpr std::array kAccessWords = {Word{"disperse", Access::disperse},
                                            Word{"affinity", Access::affinity},
                                            Word{"local", Access::local}};
inline constexpr std::array kQueueWords = {Word{"fcfs", false}, Word{"backfill", true}};
inline constexpr std::array kNodeWords = {Word{"sequential", Batch::Nodes::sequential},
                                          Word{"random", Batch::Nodes::random}};
inline constexpr std::array kPatternWords = {
    Word{"permutation", Pattern::permutation}, Word{"neighbours", Pattern::neighbours},
    Word{"all_to_all", Pattern::all_to_all}, Word{"ring", Pattern::ring}};

// REQUIRES: the value has a word.
template <typename Choice, std::size_t kCount>
[[nodiscard]] std::string_view word_of(Choice value,
                                       const std::array<Word<Choice>, kCount>& words) {
  for (const Word<Choice>& each : words) {
    if (each.value == value) return each.name;
  }
  VPFS_ASSERT(false);
  return "";
}

// Reads a key whose value is one of the words. Without the key the value stays.
template <typename Choice, std::size_t kCount>
void read_word(ConfigReader& reader, std::string_view key, Choice* value,
               const std::array<Word<Choice>, kCount>& words) {
  std::vector<std::string> names;
  names.reserve(kCount);
  for (const Word<Choice>& each : words) names.emplace_back(each.name);
  std::string name(word_of(*value, words));
  reader.choose(key, &name, names);
  for (const Word<Choice>& each : words) {
    if (each.name == name) *value = each.value;
  }
}

}  // namespace vpfs::sim
