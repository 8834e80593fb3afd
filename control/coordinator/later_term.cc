#include "control/coordinator/later_term.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "base/units.h"

namespace vpfs::coordinator {

void LaterTerm::need_above(std::uint64_t term, const std::string& stage) {
  const bool is_first = least_ == 0;
  least_ = std::max(least_, term + 1);
  if (!is_first) return;
  spdlog::warn(
      "stage {} has applied cycles of term {} of another coordinator: this aggregator begins a "
      "later term in {}",
      stage, term, to_string(pause_));
  timer_.expires_after(pause_);
  timer_.async_wait([this](std::error_code error) {
    if (!error) begin_(least_);
  });
}

}  // namespace vpfs::coordinator
