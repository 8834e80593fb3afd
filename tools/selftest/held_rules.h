#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "tools/selftest/owner.h"
#include "tools/selftest/phase.h"
#include "tools/selftest/proxy.h"
#include "tools/selftest/settings.h"

namespace vpfs::selftest {

// The rules of a running self-test at its proxy: one for each application. They end with this
// object, and by themselves if the process is killed.
class HeldRules {
 public:
  // The arguments outlive it.
  HeldRules(const Settings& settings, TestedProxy& proxy, const Clock& clock)
      : settings_(settings), proxy_(proxy), clock_(clock) {}
  ~HeldRules();
  HeldRules(const HeldRules&) = delete;
  HeldRules& operator=(const HeldRules&) = delete;

  [[nodiscard]] Result<void> start(const LoadProcess& self);
  // Gives the applications what the phase says, and no more than the share; `limit` holds the
  // first one, if it is not 0.
  [[nodiscard]] Result<void> set(const Phase& phase, BytesPerSecond limit);
  // Nothing is left of them, or the error says why.
  [[nodiscard]] Result<void> end();

 private:
  [[nodiscard]] std::string lifetime() const;
  [[nodiscard]] std::vector<std::string> words(const Phase& phase, std::size_t application,
                                               BytesPerSecond limit) const;

  const Settings& settings_;
  TestedProxy& proxy_;
  const Clock& clock_;
  std::vector<std::vector<std::string>> in_force_;  // words of each application
  TimePoint renewed_ = {};
};

}  // namespace vpfs::selftest
