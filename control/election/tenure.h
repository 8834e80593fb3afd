#pragma once

#include "base/clock.h"

namespace vpfs::election {

// How long a leader may go on. A confirmation of its office holds for a lease from when it began,
// so the leader stops before another one can have taken the office and given caps. Pure.
class Tenure {
 public:
  // The claim was asked for at `claimed`.
  Tenure(Duration lease, TimePoint claimed) : lease_(lease), confirmed_(claimed), asked_(claimed) {}

  // A confirmation begins.
  void asks(TimePoint now) { asked_ = now; }
  // The confirmation that began last has succeeded.
  void is_confirmed() { confirmed_ = asked_; }

  // Two confirmations may fail before it is over.
  [[nodiscard]] TimePoint next_confirmation() const { return asked_ + lease_ / 3; }
  // The leader sends nothing from then on. Its clock may be slow: an eighth of the lease is kept.
  [[nodiscard]] TimePoint end() const { return confirmed_ + lease_ - lease_ / 8; }

 private:
  const Duration lease_;
  TimePoint confirmed_;
  TimePoint asked_;
};

}  // namespace vpfs::election
