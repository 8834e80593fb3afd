#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/network/topology.h"

namespace vpfs::sim {

// Links in the order in which they were added.
class LinkSet {
 public:
  // Numbers below `links` may be added.
  void grow(std::size_t links) { is_in_.resize(links); }
  // False: it was in the set before.
  bool add(LinkId link) {
    if (is_in_[link] != 0) return false;
    is_in_[link] = 1;
    all_.push_back(link);
    return true;
  }
  void clear() {
    for (const LinkId link : all_) is_in_[link] = 0;
    all_.clear();
  }
  [[nodiscard]] bool contains(LinkId link) const { return is_in_[link] != 0; }
  [[nodiscard]] std::span<const LinkId> all() const { return all_; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }

 private:
  std::vector<LinkId> all_;
  std::vector<std::uint8_t> is_in_;
};

}  // namespace vpfs::sim
