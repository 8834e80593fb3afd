#include "tools/sim/replay_run.h"

#include "sim/proxies/replay/fitted_device.h"
#include "sim/proxies/replay/replay.h"

namespace vpfs::sim_tool {

FinishedReplay replayed(const sim::RecordedLoad& load, const stage::Config& config,
                        const ReplayProgress& progress) {
  constexpr int kSteps = 100;
  FinishedReplay made;
  made.length = load.length;
  made.names_are_full = load.names_are_full;
  made.device = sim::fitted_device(load);
  made.before = sim::recorded_shares(load);
  sim::Replay simulation(load, made.device, config);
  for (int step = 1; step <= kSteps; ++step) {
    simulation.run_until(step == kSteps ? simulation.length()
                                        : simulation.length() / kSteps * step);
    progress(step, simulation.events());
  }
  made.not_recorded = simulation.not_recorded();
  made.moved = simulation.moved();
  made.ambiguous = simulation.ambiguous();
  made.has_one_lane = config.scheduler_per_target;
  made.after = simulation.shares();
  return made;
}

}  // namespace vpfs::sim_tool
