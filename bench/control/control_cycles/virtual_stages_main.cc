// Plays the stages of a site: they dial a coordinator, or each part of them an aggregator, and
// answer its cycles until SIGTERM. Prints lines of JSON: one when all have answered a cycle, one at
// each SIGUSR1, and one at the end.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/system_clock.h"
#include "bench/control/control_cycles/virtual_stages.h"
#include "control/wire/port_address.h"

namespace vpfs::bench {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

struct VirtualStageSettings {
  StagesPlan plan;
  std::vector<std::string> addresses;
  net::TlsFiles tls;
};

// The signals that end the program or ask for a line, as something to read.
net::Descriptor take_signals() {
  sigset_t signals = {};
  sigemptyset(&signals);
  for (const int each : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, each);
  if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) fail_with_errno("sigprocmask");
  net::Descriptor made(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!made) fail_with_errno("signalfd");
  return made;
}

std::optional<std::uint32_t> next_signal(const net::Descriptor& signals) {
  signalfd_siginfo info = {};
  if (::read(signals.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return info.ssi_signo;
}

double mean_size(const Tally& tally) {
  if (tally.messages == 0) return 0;
  return static_cast<double>(tally.bytes) / static_cast<double>(tally.messages);
}

// Since the program was started; getrusage() counts the program that started it too.
double largest_rss_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib / 1024;
  }
  throw std::runtime_error("the kernel does not report this program's memory");
}

void print(const char* event, const VirtualStages& stages) {
  const StagesCounts& counts = stages.counts();
  nlohmann::ordered_json line = {
      {"event", event},
      {"answered", counts.asks.messages + counts.enforces.messages},
      {"asks", counts.asks.messages},
      {"enforces", counts.enforces.messages},
      {"ask_bytes", mean_size(counts.asks)},
      {"report_bytes", mean_size(counts.reports)},
      {"enforce_bytes", mean_size(counts.enforces)},
      {"ack_bytes", mean_size(counts.acks)},
      {"allocations", counts.allocations},
      {"repeated", counts.repeated},
      {"refused", counts.refused},
      {"closed", stages.closed()},
      {"cpu_ms", Milliseconds(cpu_time(::getpid())).count()},
      {"rss_mib", largest_rss_mib()},
      {"tx_bytes", counts.reports.bytes + counts.acks.bytes + counts.others_sent.bytes},
      {"rx_bytes", counts.asks.bytes + counts.enforces.bytes + counts.others_received.bytes}};
  if (const auto admitted = stages.admitted()) {
    line["admitted_ms"] = Milliseconds(*admitted).count();
  }
  std::cout << line.dump() << std::endl;
}

// With the time of the clock that other programs read as CLOCK_MONOTONIC.
void print_led(const VirtualStages& stages) {
  const Milliseconds at = std::chrono::steady_clock::now().time_since_epoch();
  const nlohmann::ordered_json line = {
      {"event", "led"}, {"term", stages.latest_term()}, {"at_ms", at.count()}};
  std::cout << line.dump() << std::endl;
}

void run(VirtualStageSettings& settings) {
  raise_file_limit();
  for (const std::string& each : settings.addresses) {
    const auto address = control::parse_port_address(each);
    if (!address) throw std::runtime_error(address.error().message);
    settings.plan.addresses.push_back(*address);
  }
  std::optional<TlsClient> tls;
  if (!settings.tls.ca.empty()) tls.emplace(settings.tls, settings.plan.addresses.front().host);
  const net::Descriptor signals = take_signals();
  const SystemClock clock;
  VirtualStages stages(settings.plan, tls ? &*tls : nullptr, clock, signals);
  stages.on_ready([](const VirtualStages& all) { print("ready", all); });
  if (settings.plan.roams) stages.on_led(print_led);
  for (bool ended = false; !ended;) {
    stages.serve_until_signal();
    while (const auto signal = next_signal(signals)) {
      if (*signal == SIGUSR1) print("now", stages);
      ended |= *signal != SIGUSR1;
    }
  }
  print("end", stages);
}

}  // namespace
}  // namespace vpfs::bench

int main(int argc, char** argv) {
  vpfs::bench::VirtualStageSettings settings;
  vpfs::bench::StagesPlan& plan = settings.plan;
  vpfs::OptionParser app("Plays the stages of a site until SIGTERM.");
  app.add_option("--address", settings.addresses,
                 "where coordinators listen for stages; with several, each gets an equal part")
      .required();
  app.add_option("--stages", plan.stages).positive();
  app.add_option("--per-job", plan.per_job, "stages of each job").positive();
  app.add_option("--first-index", plan.first_index, "number of the first stage");
  app.add_option("--connect-parallel", plan.connect_parallel,
                 "stages that have dialled and are not greeted yet, at most")
      .positive();
  app.add_flag("--roam", plan.roams,
               "the addresses are those of members, and each stage finds its own");
  const vpfs::Option ca =
      app.add_option("--ca", settings.tls.ca, "TLS; with --certificate and --key");
  app.add_option("--certificate", settings.tls.certificate).needs(ca);
  app.add_option("--key", settings.tls.key).needs(ca);
  if (const auto code = app.parse(argc, argv)) return *code;
  try {
    vpfs::bench::run(settings);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "vpfs-bench-virtual-stages: " << error.what() << '\n';
    return 1;
  }
}
