#pragma once

#include <vector>

#include "control/admin/stage_access.h"
#include "proxy/dispatcher.h"

namespace vpfs::proxy {

// The stage behind a dispatcher's lock.
class DispatcherAccess final : public control::StageAccess {
 public:
  // Both outlive it.
  DispatcherAccess(Dispatcher& dispatcher, const Clock& clock)
      : dispatcher_(dispatcher), clock_(clock) {}

  void inspect(const Visitor& visit) override { dispatcher_.inspect(clock_.now(), visit); }
  void give_way() override { dispatcher_.give_way(); }
  void copy_counters(std::vector<stage::CounterRow>& rows) override {
    dispatcher_.copy_counters(clock_.now(), rows);
  }

 private:
  Dispatcher& dispatcher_;
  const Clock& clock_;
};

}  // namespace vpfs::proxy
