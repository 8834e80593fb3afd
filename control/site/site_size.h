#pragma once

#include <cstddef>

#include "control/admin/live_state.h"
#include "stage/book/live_rules.h"
#include "stage/book/operation.h"

namespace vpfs::coordinator {

// The longest message about rules and jobs (control::Site) that stages take, in bytes. A longer one
// would end the connection: a frame has at most 4 MiB, and needs a few bytes besides.
inline constexpr std::size_t kMostSiteBytes = std::size_t{4} * 1024 * 1024 - 64;

// The size of that message without the coordinator's name, and the part of it that rules of the
// administrators have. Cost: that of making the message.
struct SiteSize {
  std::size_t all = 0;
  std::size_t administrators_rules = 0;
};
[[nodiscard]] SiteSize size_of(const control::LiveState& live);

// What a prepared change adds to that message.
struct SiteGrowth {
  std::size_t most = 0;         // bytes, and rarely fewer; what it takes away is not counted
  bool replaces_rules = false;  // it takes away all rules of the administrators
};
// Cost: the size of the change.
[[nodiscard]] SiteGrowth growth_of(const stage::BookOperation& operation,
                                   const stage::BookState& book);

}  // namespace vpfs::coordinator
