#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/policy_kind.h"

namespace vpfs::conformance {

// A policy that is to be checked.
struct Subject {
  const PolicyKind* kind = nullptr;
  SchedulerSettings settings = {};  // its own; each rule has its depth and classes
  // Prepares the settings of one run, which have depth and classes, and says whether the policy may
  // keep any request back until a time that it names. Nothing: it is work conserving.
  std::function<bool(SchedulerSettings& settings, std::uint64_t seed)> vary = {};
  // How much the program has allocated. Nothing: that is not counted.
  std::function<std::uint64_t()> allocations = {};
};

// What every policy keeps, whatever it decides.
struct Rule {
  std::string_view name;
  std::string_view about;  // a sentence for people
  // Says what is wrong; "": nothing. Takes a second at most, and the same time each time.
  std::string (*check)(const Subject& subject);
};

// The first one is kFirstRule; a policy that breaks it cannot be checked for the others.
[[nodiscard]] std::span<const Rule> rules();
inline constexpr std::string_view kFirstRule = "make";

// What flows with these weights get while all of them keep requests of 64 KiB queued: the cost that
// is sent for each, of 64 MiB for each flow. For people: a policy need not share by weight.
[[nodiscard]] std::vector<Cost> divided_by_weight(const Subject& subject,
                                                  std::span<const std::uint32_t> weights);

}  // namespace vpfs::conformance
