#include "protocols/orangefs/basic_fields.h"

#include <array>

namespace vpfs::orangefs {
namespace {

// In the order of Distribution's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Distribution>> kDistributionNames = {
    kSimpleStripeName, kBasicDistributionName, kTwoDStripeName, kVarStripName};

}  // namespace

std::string_view name(const Distribution& distribution) {
  return kDistributionNames[distribution.index()];
}

std::optional<Distribution> distribution_named(std::string_view name) {
  if (name == kSimpleStripeName) return SimpleStripe{};
  if (name == kBasicDistributionName) return BasicDistribution{};
  if (name == kTwoDStripeName) return TwoDStripe{};
  if (name == kVarStripName) return VarStrip{};
  return std::nullopt;
}

bool is_dense(const FileRequestElement& whole) {
  return whole.offset == 0 && whole.lb == 0 && whole.num_contig_chunks == 1 &&
         whole.ub == whole.aggregate_size;
}

bool FileRequest::dense() const {
  return !elements.empty() && is_dense(elements.front());
}

FileRequest FileRequest::contiguous_bytes() {
  FileRequest request;
  request.elements.push_back({.num_blocks = 0,
                              .stride = 1,
                              .ub = 1,
                              .aggregate_size = 1,
                              .depth = 1,
                              .committed = -1,
                              .refcount = -1});
  return request;
}

}  // namespace vpfs::orangefs
