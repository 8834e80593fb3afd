#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "control/wire/port_address.h"

namespace vpfs::control {

// Which address of a coordinator is dialled: one after the other, until all have failed. Then it is
// time for a pause. It has no clock and no socket.
class AddressRound {
 public:
  AddressRound() = default;
  // REQUIRES of all that follows: there is an address.
  explicit AddressRound(std::vector<PortAddress> addresses);
  // Other addresses. What current() is stays so. REQUIRES: has(current()) afterwards.
  void change(std::vector<PortAddress> addresses);

  [[nodiscard]] const std::vector<PortAddress>& addresses() const { return addresses_; }
  [[nodiscard]] const PortAddress& current() const { return addresses_[current_]; }
  [[nodiscard]] bool is_alone() const { return addresses_.size() == 1; }

  // The attempt at current() has failed, or its connection has ended: the next one is current.
  // Whether all have failed since the last pause, so that one is due.
  [[nodiscard]] bool fail(std::string why);
  // The one that failed has named others: the first of them that is among the addresses, and has
  // not failed since the last pause, is current. Only addresses of the configuration are dialled.
  void prefer(const std::vector<std::string>& named);
  // The connection to current() was a good one. All addresses are tried again before a pause.
  void begin();
  // Why nothing is connected, in the order of the addresses. REQUIRES: all have failed.
  [[nodiscard]] std::string problem() const;

 private:
  // In this round.
  [[nodiscard]] bool has_failed(std::size_t which) const { return !problems_[which].empty(); }

  std::vector<PortAddress> addresses_;
  std::vector<std::string> problems_;  // of each address, in this round
  std::size_t current_ = 0;
  std::size_t failed_ = 0;  // in this round
};

}  // namespace vpfs::control
