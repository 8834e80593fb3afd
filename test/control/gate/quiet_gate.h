#pragma once

#include <atomic>
#include <cstddef>

#include "control/gate/stage_gate.h"

namespace vpfs::test {

// A gate that counts how often its owner is asked to look again.
class QuietGate final : public control::StageGate {
 public:
  using StageGate::StageGate;
  [[nodiscard]] std::size_t asked() const { return asked_; }

 private:
  void ask_again() override { ++asked_; }

  std::atomic<std::size_t> asked_ = 0;
};

}  // namespace vpfs::test
