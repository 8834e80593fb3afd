#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace vpfs::coordinator {

// The processes of stages that a coordinator may have sent cycles in its term, by their
// incarnations: those that are connected, and the last ones that have left. If one that was
// forgotten comes back, the coordinator takes it for one that another coordinator of its term has
// led.
class LedStages {
 public:
  static constexpr std::size_t kMostGone = 65'536;

  explicit LedStages(std::size_t most_gone = kMostGone) : most_gone_(most_gone) {}

  void joined(std::uint64_t incarnation);
  // `was_sent_cycle`: on the connection that ends. REQUIRES: joined() was called for it.
  void left(std::uint64_t incarnation, bool was_sent_cycle);
  [[nodiscard]] bool contains(std::uint64_t incarnation) const {
    return all_.contains(incarnation);
  }
  [[nodiscard]] std::size_t size() const { return all_.size(); }

 private:
  struct Led {
    std::size_t connections = 0;
    bool was_sent_cycle = false;
    std::uint64_t left_as = 0;  // in gone_; zero: it is connected
  };

  const std::size_t most_gone_;
  std::unordered_map<std::uint64_t, Led> all_;
  std::map<std::uint64_t, std::uint64_t> gone_;  // incarnations in the order of leaving
  std::uint64_t last_ = 0;
};

}  // namespace vpfs::coordinator
