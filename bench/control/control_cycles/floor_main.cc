// Measures the floor of control cycles: a process with a coordinator's sockets, another one with
// those of all stages. Prints its results as JSON.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/system_clock.h"
#include "bench/control/control_cycles/floor.h"

namespace vpfs::bench {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

struct FloorSettings {
  std::size_t stages = 50;
  std::string transport = "unix";
  std::vector<std::size_t> sizes;  // in the order in which messages are sent
  std::size_t burst = 64;
  double warm_up = 0.2;  // seconds
  double seconds = 2;
  std::size_t least_cycles = 10;
};

// Another process, which ends with this one.
class Child {
 public:
  template <typename Main>
  explicit Child(const Main& main) : process_(::fork()) {
    if (process_ < 0) fail_with_errno("fork");
    if (process_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 0;
    try {
      main();
    } catch (const std::exception& error) {
      std::cerr << "stages: " << error.what() << std::endl;
      code = 1;
    }
    ::_exit(code);
  }
  ~Child() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t process() const { return process_; }

 private:
  pid_t process_;
};

double quantile(const std::vector<double>& sorted, double q) {
  const double place = q * static_cast<double>(sorted.size());
  const auto index = static_cast<std::size_t>(std::max(0.0, std::ceil(place) - 1));
  return sorted[std::min(index, sorted.size() - 1)];
}

nlohmann::ordered_json summary(std::vector<double> times) {
  std::ranges::sort(times);
  const auto count = static_cast<double>(times.size());
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / count;
  double squares = 0;
  for (const double each : times) squares += (each - mean) * (each - mean);
  return {{"cycles", times.size()},
          {"mean_ms", mean},
          {"std_ms", std::sqrt(squares / count)},
          {"p50_ms", quantile(times, 0.5)},
          {"p99_ms", quantile(times, 0.99)}};
}

std::vector<RoundTrip> round_trips(const std::vector<std::size_t>& sizes) {
  std::vector<RoundTrip> made;
  for (std::size_t i = 0; i + 1 < sizes.size(); i += 2) {
    made.push_back({.request = sizes[i], .answer = sizes[i + 1]});
  }
  return made;
}

control::PortAddress address_for(const std::string& transport) {
  if (transport == "unix") {
    return {.path = fmt::format("control-floor-{}.sock", ::getpid()), .host = {}};
  }
  return {.path = {}, .host = "127.0.0.1"};
}

void run(const FloorSettings& settings) {
  raise_file_limit();
  const std::vector<RoundTrip> cycle = round_trips(settings.sizes);
  control::PortAddress address = address_for(settings.transport);
  const net::Descriptor listener = listen_at(address);
  const Child stages([&] { play_stages(address, settings.stages, cycle); });
  FloorServer server(listener, settings.stages, cycle, settings.burst);
  if (address.is_unix()) ::unlink(address.path.c_str());

  const SystemClock clock;
  const auto run_for = [&](double seconds, std::size_t least, std::vector<double>& times) {
    const TimePoint begin = clock.now();
    for (TimePoint last = begin;
         last - begin < std::chrono::duration<double>(seconds) || times.size() < least;) {
      server.run_cycle();
      const TimePoint now = clock.now();
      times.push_back(Milliseconds(now - last).count());
      last = now;
    }
  };
  std::vector<double> times;
  run_for(settings.warm_up, 1, times);
  times.clear();
  times.reserve(1 << 20);
  const auto own = cpu_time(::getpid());
  const auto others = cpu_time(stages.process());
  run_for(settings.seconds, settings.least_cycles, times);
  const auto each = [&](std::chrono::nanoseconds used) {
    return Milliseconds(used).count() / static_cast<double>(times.size());
  };
  const double own_ms = each(cpu_time(::getpid()) - own);
  const double others_ms = each(cpu_time(stages.process()) - others);
  nlohmann::ordered_json results = {
      {"stages", settings.stages}, {"transport", settings.transport}, {"sizes", settings.sizes}};
  results.update(summary(std::move(times)));
  results["coordinator_cpu_ms"] = own_ms;
  results["stages_cpu_ms"] = others_ms;
  std::cout << results.dump() << std::endl;
}

}  // namespace
}  // namespace vpfs::bench

int main(int argc, char** argv) {
  vpfs::bench::FloorSettings settings;
  vpfs::OptionParser app("Measures control cycles without messages' contents.");
  app.add_option("--stages", settings.stages).positive();
  app.add_option("--transport", settings.transport, "unix, or tcp over loopback")
      .one_of({"unix", "tcp"});
  app.add_option("--sizes", settings.sizes,
                 "bytes of the messages of a cycle: fused has a request and its answer; four has "
                 "two of each")
      .required()
      .separated_by_commas()
      .between(1, 65536);
  app.add_option("--burst", settings.burst, "requests that are sent before answers are taken")
      .positive();
  app.add_option("--warm-up", settings.warm_up, "seconds");
  app.add_option("--seconds", settings.seconds, "length of the measured time");
  app.add_option("--least-cycles", settings.least_cycles, "measures longer if they take longer");
  if (const auto code = app.parse(argc, argv)) return *code;
  if (settings.sizes.size() % 2 != 0) {
    std::cerr << "vpfs-bench-control-floor: --sizes needs an answer for each request\n";
    return 2;
  }
  try {
    vpfs::bench::run(settings);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "vpfs-bench-control-floor: " << error.what() << '\n';
    return 1;
  }
}
