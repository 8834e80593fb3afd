// The speed of the simulator's engine of events. The hold model: so many events are pending, and
// each that runs plans another one, after a random time. So the heap has the same size all the
// time. Some events are cancelled and planned anew, as the end of a flow is when its rate changes.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/command_line.h"
#include "base/system_clock.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"

namespace vpfs::sim {
namespace {

struct EngineBenchSettings {
  std::vector<std::uint32_t> pending = {1, 100, 10'000, 1'000'000};  // events at any time
  std::vector<std::uint32_t> cancels = {0, 50};  // percent of events that move another one
  std::uint64_t events = 5'000'000;              // that are measured
  std::uint64_t seed = 1;
};

constexpr std::uint64_t kLongestDelay = 1'000'000;  // ns

class Hold {
 public:
  Hold(std::uint32_t pending, std::uint32_t cancel_percent, std::uint64_t seed)
      : random_(seed), cancel_percent_(cancel_percent) {
    events_.resize(pending);
    for (std::uint32_t i = 0; i < pending; ++i) plan(i);
  }

  void run(std::uint64_t events) {
    for (std::uint64_t i = 0; i < events; ++i) VPFS_ASSERT(engine_.step());
  }

 private:
  void plan(std::uint32_t index) {
    const Duration delay(static_cast<std::int64_t>(1 + random_.below(kLongestDelay)));
    events_[index] = engine_.after(delay, [this, index] { happen(index); });
  }
  void happen(std::uint32_t index) {
    plan(index);
    if (cancel_percent_ == 0 || !random_.chance(cancel_percent_)) return;
    const auto other = static_cast<std::uint32_t>(random_.below(events_.size()));
    VPFS_ASSERT(engine_.cancel(events_[other]));
    plan(other);
  }

  Engine engine_;
  Random random_;
  std::uint32_t cancel_percent_;
  std::vector<Engine::EventId> events_;
};

nlohmann::json measure(std::uint32_t pending, std::uint32_t cancel_percent,
                       const EngineBenchSettings& settings) {
  Hold hold(pending, cancel_percent, settings.seed);
  hold.run(pending);  // until every event was planned by another one
  const SystemClock clock;
  const TimePoint begin = clock.now();
  hold.run(settings.events);
  const double seconds = std::chrono::duration<double>(clock.now() - begin).count();
  return {{"pending", pending},
          {"cancel_percent", cancel_percent},
          {"events_per_second", static_cast<double>(settings.events) / seconds}};
}

int bench(int argc, char** argv) {
  EngineBenchSettings settings;
  std::string json_path;
  OptionParser app("Events per second of the simulator's engine.");
  app.add_option("--pending", settings.pending, "Events that are planned at any time")
      .separated_by_commas()
      .positive();
  app.add_option("--cancels", settings.cancels, "Percent of events that cancel another one")
      .separated_by_commas()
      .between(0, 100);
  app.add_option("--events", settings.events, "Events of each measurement");
  app.add_option("--seed", settings.seed, "Seed of the times");
  app.add_option("--json", json_path, "Where to write the result");
  if (const auto code = app.parse(argc, argv)) return *code;

  nlohmann::json rows = nlohmann::json::array();
  fmt::print("seed {}, {} events, delays up to {} ns\n", settings.seed, settings.events,
             kLongestDelay);
  fmt::print("{:>9} {:>10} {:>14}\n", "pending", "cancel %", "events per s");
  for (const std::uint32_t pending : settings.pending) {
    for (const std::uint32_t cancels : settings.cancels) {
      const nlohmann::json& row = rows.emplace_back(measure(pending, cancels, settings));
      fmt::print("{:>9} {:>10} {:>14.0f}\n", pending, cancels,
                 row["events_per_second"].get<double>());
      std::fflush(stdout);
    }
  }
  if (!json_path.empty()) {
    std::ofstream(json_path) << nlohmann::json{
        {"seed", settings.seed},
        {"events", settings.events},
        {"rows", rows}}.dump(2);
  }
  return 0;
}

}  // namespace
}  // namespace vpfs::sim

int main(int argc, char** argv) {
  try {
    return vpfs::sim::bench(argc, argv);
  } catch (const std::exception& exception) {
    std::cerr << exception.what() << "\n";
    return 1;
  }
}
