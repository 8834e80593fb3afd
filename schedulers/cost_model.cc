#include "schedulers/cost_model.h"

#include <algorithm>

namespace vpfs {
namespace {

constexpr std::uint64_t kPermille = 1000;

}  // namespace

Cost CostModel::cost(IoKind kind, Bytes size) const {
  if (kind == IoKind::metadata) size = settings_.metadata;
  std::uint64_t factor = kPermille;
  if (kind == IoKind::read) factor = settings_.read_factor_permille;
  if (kind == IoKind::write) factor = settings_.write_factor_permille;
  // At this size the smallest factor already makes kMaxCost, and no product below overflows:
  // 2^40 (kMaxCost) x 2^20 (the largest factor).
  const std::uint64_t bytes = std::min(size.count, kMaxCost * kPermille);
  const Cost moved = bytes / kPermille * factor + bytes % kPermille * factor / kPermille;
  const Cost fixed = std::min(settings_.per_request.count, kMaxCost);
  return std::clamp<Cost>(fixed + moved, 1, kMaxCost);
}

}  // namespace vpfs
