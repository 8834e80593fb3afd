#pragma once

#include <vector>

#include "control/admin/stage_access.h"
#include "control/host/stage_gate.h"

namespace vpfs::control {

// The stage behind a gate's lock.
class GateAccess final : public StageAccess {
 public:
  // Both outlive it.
  GateAccess(StageGate& gate, const Clock& clock) : gate_(gate), clock_(clock) {}

  void inspect(const Visitor& visit) override { gate_.inspect(clock_.now(), visit); }
  void give_way() override { gate_.give_way(); }
  void copy_counters(std::vector<stage::CounterRow>& rows) override {
    gate_.copy_counters(clock_.now(), rows);
  }

 private:
  StageGate& gate_;
  const Clock& clock_;
};

}  // namespace vpfs::control
