#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/config_reader.h"
#include "base/result.h"
#include "base/saved/saved_state.h"
#include "schedulers/crowd_clock.h"
#include "schedulers/hold_times.h"
#include "schedulers/policy.h"
#include "schedulers/policy_kind.h"
#include "schedulers/rate_limits.h"
#include "schedulers/scheduler.h"

// What a shared library with policies has for programs of vpfs (docs/schedulers.md, "Policies as
// plugins"). In one source of the library:
//
//   VPFS_SCHEDULER_PLUGIN("University of X, drr 1.2", &Drr::kKind)
namespace vpfs {

// The version of everything that a policy and a program tell each other: the virtual functions of
// Policy, the types in their parameters, PolicyKind, and what these mean. Any change of them makes
// a new one, and programs load only plugins of their own. A test notices changes of layouts.
inline constexpr std::uint32_t kPluginInterface = 1;

// Both sides have the standard library's types in common.
#if defined(_LIBCPP_VERSION)
inline constexpr const char* kPluginBuild = "libc++";
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
inline constexpr const char* kPluginBuild = "libstdc++";
#else
inline constexpr const char* kPluginBuild = "libstdc++ with strings from before C++11";
#endif

namespace plugin {

// Sizes of the types that both sides lay out for themselves.
template <typename... Types>
[[nodiscard]] constexpr std::uint64_t layout_of() {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::size_t part : {sizeof(Types)..., alignof(Types)...}) {
    hash = (hash ^ part) * 0x100000001b3;
  }
  return hash;
}

}  // namespace plugin

inline constexpr std::uint64_t kPluginLayout =
    plugin::layout_of<void*, std::string, std::vector<int>, std::any, Policy, Policy::Head,
                      FlowState, WaitReason, IoRequest, Share, Share::Own, Limits, Loans,
                      StatusField, StatusFields, HoldClock, CrowdClock, RateLimits, Scheduler::Part,
                      Depth, AutoDepth, TrafficClasses, OwnSettings, SchedulerSettings, ShareWord,
                      PolicyKind, ConfigReader, SavedState, Error, Result<void>>();

// What the entry function of a plugin returns. Programs look at `interface` first, at the rest only
// if it is theirs. The plugin owns everything in it, for as long as the process runs.
struct PluginDescription {
  std::uint32_t interface;
  std::uint32_t count;  // of policies
  std::uint64_t layout;
  const char* build;
  const char* maker;  // for people: where it is from, which version
  const PolicyKind* const* policies;
};
static_assert(std::is_standard_layout_v<PluginDescription>);

inline constexpr const char* kPluginEntry = "vpfs_scheduler_plugin";
using PluginEntry = const PluginDescription* (*)();

}  // namespace vpfs

#define VPFS_SCHEDULER_PLUGIN(made_by, ...)                                            \
  extern "C" __attribute__((visibility("default"))) const ::vpfs::PluginDescription*   \
  vpfs_scheduler_plugin() {                                                            \
    static const ::vpfs::PolicyKind* const kPolicies[] = {__VA_ARGS__};                \
    static const ::vpfs::PluginDescription kDescription = {                            \
        .interface = ::vpfs::kPluginInterface,                                         \
        .count = static_cast<std::uint32_t>(sizeof(kPolicies) / sizeof(kPolicies[0])), \
        .layout = ::vpfs::kPluginLayout,                                               \
        .build = ::vpfs::kPluginBuild,                                                 \
        .maker = made_by,                                                              \
        .policies = kPolicies};                                                        \
    return &kDescription;                                                              \
  }                                                                                    \
  static_assert(true, "")
