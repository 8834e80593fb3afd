#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vpfs::sim {

enum class TrafficClass : std::uint8_t { communication, storage };
inline constexpr std::size_t kTrafficClasses = 2;
inline constexpr std::array kAllClasses = {TrafficClass::communication, TrafficClass::storage};
inline constexpr std::span<const TrafficClass> kCommunicationOnly = std::span(kAllClasses).first(1);
inline constexpr std::span<const TrafficClass> kStorageOnly = std::span(kAllClasses).last(1);

// What a flow gets of what other flows cannot use.
enum class Sharing : std::uint8_t {
  // All that it can use: rates are max-min fair.
  max_min,
  // Nothing. A flow's rate is the lowest of its parts of its links, and each link gives every flow
  // the same part, whatever else bounds that flow. So links are partly idle that flows wait for.
  // - BA: the parts of a class are those of its share, on links that have flows of both.
  // - FP: communication has its parts as if there were no storage, and storage as if classes did
  //   not count. So a link may carry more than its capacity.
  // Fast network simulators do that. It is here to show which results depend on it.
  // A flow that may not rise keeps the lowest rate that it ever had.
  equal,
  // As equal; but with FP, links that carry communication do not bound storage at all, and on
  // others storage shares alone. So does the simulator of the study that docs/placement.md repeats.
  study,
};

// How links divide their capacity between the classes. Within a class it is always max-min fair,
// unless `sharing` says otherwise. A flow's rate cap counts as one more link of its route, which it
// has for itself.
struct ClassPolicy {
  enum class Kind : std::uint8_t {
    // NP: classes do not count. The allocation is max-min fair: each flow has a bottleneck, a link
    // of its route that is full and on which no flow is faster.
    none,
    // BA x:y. A class's share of a link is x / (x + y) or y / (x + y) of its capacity. Each flow
    // has a bottleneck: a link that is full, on which no flow of its class is faster, and of which
    // its class has its share or more. So a class that presses on a link has its share of it, and
    // what one class leaves there the other takes.
    apportioned,
    // FP: communication is allotted as if there were no storage, then storage as if links had what
    // communication leaves. Both are max-min fair.
    priority,
  };

  Kind kind = Kind::none;
  // x and y of BA, at least 1.
  std::uint32_t communication = 1;
  std::uint32_t storage = 1;
  Sharing sharing = Sharing::max_min;

  [[nodiscard]] static constexpr ClassPolicy none() { return {}; }
  [[nodiscard]] static constexpr ClassPolicy apportioned(std::uint32_t communication,
                                                         std::uint32_t storage) {
    return {.kind = Kind::apportioned, .communication = communication, .storage = storage};
  }
  [[nodiscard]] static constexpr ClassPolicy priority() { return {.kind = Kind::priority}; }
};

}  // namespace vpfs::sim
