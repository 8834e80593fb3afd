// vpfs-bench-relay runs the model of bench/data_path/relay/model.h once through one relay mechanism
// and prints one line of JSON. bench/data_path/relay.py runs it for every mechanism in turn.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/system_clock.h"
#include "base/units.h"
#include "bench/data_path/relay/model.h"
#include "bench/data_path/relay/pump.h"

namespace {

using namespace vpfs;
using namespace vpfs::bench;
using Sockets = std::vector<std::pair<int, int>>;

struct Variant {
  std::optional<Mechanism> mechanism;  // none: io_uring, or direct if there is no buffer
  std::size_t buffer = 0;
};

const std::map<std::string, Variant> kVariants = {
    {"direct", {}},
    {"copy-64k", {Mechanism::copy, 64 * kKiB}},
    {"copy-256k", {Mechanism::copy, 256 * kKiB}},
    {"recv8k-splice", {Mechanism::recv_splice, 8 * kKiB}},
    {"adaptive", {Mechanism::adaptive, 256 * kKiB}},
    {"peek-splice", {Mechanism::peek_splice, 0}},
    {"peek-or-copy", {Mechanism::peek_or_copy, 256 * kKiB}},
    {"uring-256k", {std::nullopt, 256 * kKiB}},
};

double thread_cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Outcome {
  double mib_per_s = 0;
  double relay_cpu_s_per_gib = 0;
};

// Runs both peers and the relay between them for `duration`.
class Run {
 public:
  Run(const Workload& workload, const Variant& variant, const std::string& congestion_control)
      : workload_(workload), variant_(variant) {
    for (std::size_t i = 0; i < workload.connections; ++i) {
      const auto client = connected_sockets(congestion_control);
      client_sockets_.push_back(client.first);
      if (direct()) {
        server_sockets_.push_back(client.second);
        continue;
      }
      const auto server = connected_sockets(congestion_control);
      relayed_.emplace_back(client.second, server.first);
      server_sockets_.push_back(server.second);
    }
  }

  Outcome measure(Duration duration) {
    const auto request = request_of(workload_);
    const auto answer = answer_of(workload_);
    Peer client(client_sockets_, request, answer.size(), workload_.outstanding);
    Peer server(server_sockets_, answer, request.size(), 0);
    std::atomic<bool> stop = false;
    const SystemClock clock;
    const TimePoint begin = clock.now();
    std::thread server_thread([&] { server.run(stop); });
    std::thread relay_thread([&] { relay(); });
    std::thread client_thread([&] { client.run(stop); });
    std::this_thread::sleep_for(duration);
    const auto moved = static_cast<double>(client.units_received() * workload_.size);
    const std::chrono::duration<double> elapsed = clock.now() - begin;
    stop = true;
    client_thread.join();
    server_thread.join();
    // The relay ends with the first connection that ends, whichever side it waits for.
    for (const int socket : client_sockets_) ::shutdown(socket, SHUT_RDWR);
    for (const int socket : server_sockets_) ::shutdown(socket, SHUT_RDWR);
    relay_thread.join();
    if (!problem_.empty()) throw std::runtime_error(problem_);
    return {.mib_per_s = moved / static_cast<double>(kMiB) / elapsed.count(),
            .relay_cpu_s_per_gib = moved > 0 ? cpu_ / (moved / static_cast<double>(kGiB)) : 0};
  }

 private:
  [[nodiscard]] bool direct() const { return variant_.buffer == 0 && !variant_.mechanism; }

  void relay() {
    if (direct()) return;
    try {
      if (variant_.mechanism) {
        relay_with_epoll(relayed_, *variant_.mechanism, variant_.buffer);
      } else {
        relay_with_uring(relayed_, variant_.buffer);
      }
    } catch (const std::exception& error) {
      problem_ = error.what();
    }
    cpu_ = thread_cpu_seconds();
  }

  Workload workload_;
  Variant variant_;
  std::vector<int> client_sockets_;
  std::vector<int> server_sockets_;
  Sockets relayed_;
  double cpu_ = 0;
  std::string problem_;
};

int run(int argc, char** argv) {
  OptionParser app("Runs a model client and server once through one relay mechanism.");
  std::string variant = "direct";
  std::string congestion_control = "cubic";
  std::string op = "read";
  Workload workload;
  double seconds = 1;
  std::vector<std::string> names;
  names.reserve(kVariants.size());
  for (const auto& [name, unused] : kVariants) names.push_back(name);
  app.add_option("--variant", variant).one_of(names);
  app.add_option("--congestion-control", congestion_control, "empty: the system's").may_be_empty();
  app.add_option("--op", op).one_of({"read", "write"});
  app.add_option("--size", workload.size, "bytes per operation").positive();
  app.add_option("--outstanding", workload.outstanding).positive();
  app.add_option("--connections", workload.connections).positive();
  app.add_option("--seconds", seconds).positive();
  if (const auto code = app.parse(argc, argv)) return *code;
  workload.write = op == "write";

  const auto duration =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  const Outcome outcome =
      Run(workload, kVariants.at(variant), congestion_control).measure(duration);
  const nlohmann::json line = {{"variant", variant},
                               {"mib_per_s", outcome.mib_per_s},
                               {"relay_cpu_s_per_gib", outcome.relay_cpu_s_per_gib}};
  fmt::print("{}\n", line.dump());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);  // splicing into a closed socket raises it
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "vpfs-bench-relay: {}\n", error.what());
    return 1;
  }
}
