#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "schedulers/policies/claim_bound.h"
#include "schedulers/start_tag.h"
#include "schedulers/total_service.h"

namespace vpfs {

// What one Sfq tells the other schedulers of its data server through a TotalService, and what it
// has heard of them (docs/schedulers.md, "Targets of one server"). Allocates in grow() only.
class Siblings {
 public:
  using Tag = StartTag::Tag;
  // The bound of what siblings do to a tag (ClaimBound).
  static constexpr Tag kSteps = 64;
  static constexpr Cost kRequests = 256;

  // nullptr: there are none. `total` outlives this.
  explicit Siblings(TotalService* total) : total_(total) {}

  [[nodiscard]] bool exist() const { return total_ != nullptr; }

  void grow(std::size_t flows) {
    if (!exist()) return;
    total_->grow(flows);
    for (auto index = static_cast<std::uint32_t>(seen_.size()); index < flows; ++index) {
      const TotalService::Row& row = (*total_)[index];
      seen_.push_back({.served = row.served, .returns = row.returns});
    }
  }
  // Where there are none, these do nothing.
  void arrived(std::uint32_t flow, Cost cost, Tag amount, TimePoint now) {
    if (!exist()) return;
    total_->arrived(flow, now);
    bound_.sent(cost, amount);
  }
  void left(std::uint32_t flow, std::uint32_t requests, TimePoint now) {
    if (exist()) total_->left(flow, requests, now);
  }
  // The tag has moved by service here, or back.
  void served(std::uint32_t flow, Tag amount) {
    if (!exist()) return;
    total_->served(flow, amount);
    seen_[flow].served += amount;
  }
  void gave_back(std::uint32_t flow, Tag amount) {
    if (!exist()) return;
    total_->gave_back(flow, amount);
    seen_[flow].served -= amount;
  }
  // The number is another flow's from now on.
  void begin_anew(std::uint32_t flow) {
    if (flow < seen_.size()) seen_[flow].served = (*total_)[flow].served;
  }

  // How far a flow may be from v by what siblings sent; zero where there are none.
  [[nodiscard]] Tag most(const StartTag& flow) const { return exist() ? bound_.most(flow) : 0; }
  [[nodiscard]] Duration longest_delay() const {
    return exist() ? total_->longest_delay() : Duration::zero();
  }

  // The bound, for a successor. Totals are only compared, so they begin anew.
  [[nodiscard]] ClaimBound& bound() { return bound_; }

  // REQUIRES (all that follow): they exist.
  // Whether the flow has more requests in all than these, which are here.
  [[nodiscard]] bool have_more_than(std::uint32_t here, std::uint32_t flow) const {
    return (*total_)[flow].present > here;
  }
  // Whether the flow came back to the server after a long time since this was asked last.
  [[nodiscard]] bool have_missed(std::uint32_t flow) {
    const std::uint32_t returns = (*total_)[flow].returns;
    return std::exchange(seen_[flow].returns, returns) != returns;
  }
  // What they have sent since this was asked last, modulo 2^64: requests may have given back more.
  [[nodiscard]] Tag news_of(std::uint32_t flow) {
    const Tag served = (*total_)[flow].served;
    return served - std::exchange(seen_[flow].served, served);
  }
  // Whether all were idle at one moment since this was asked last.
  [[nodiscard]] bool were_idle() {
    return std::exchange(idle_moments_, total_->idle_moments()) != total_->idle_moments();
  }

 private:
  // What is known of the flow's row of total_.
  struct Seen {
    Tag served = 0;
    std::uint32_t returns = 0;
  };

  TotalService* total_;
  std::vector<Seen> seen_;
  ClaimBound bound_ = {kSteps, kRequests};
  std::uint64_t idle_moments_ = 0;
};

}  // namespace vpfs
