#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "tools/load/meter.h"
#include "tools/load/settings.h"

namespace vpfs::load {

struct CpuTime {
  double user = 0;  // seconds
  double system = 0;
};

// What a whole run has shown; `totals` is in the order of the settings' applications.
struct RunResult {
  std::vector<Meter::Totals> totals;
  Duration duration = {};    // of the measured part, 0 when the run was ended before it
  bool ended_early = false;  // by a signal
  CpuTime cpu;               // of this program within the measured time

  [[nodiscard]] bool good() const;
};

// What `--json` writes; docs/tools.md describes it.
[[nodiscard]] std::string to_json(const LoadSettings& settings, const RunResult& result);
// For people, one line an application.
[[nodiscard]] std::string to_table(const LoadSettings& settings, const RunResult& result);
// "  3.0 s  simulation 512.3 MiB/s 512 op/s  analysis ...  total 768.1 MiB/s"; `before` and `now`
// are the live numbers of every application at both ends of `elapsed`, `time` counts from the end
// of the warm-up.
[[nodiscard]] std::string live_line(const LoadSettings& settings,
                                    const std::vector<Meter::Live>& before,
                                    const std::vector<Meter::Live>& now, Duration time,
                                    Duration elapsed);

}  // namespace vpfs::load
