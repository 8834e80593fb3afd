// Plays a coordinator on the control port of a stage: sends new allocations for all virtual PFSes
// each period, and takes the report of what has changed. Prints its results as JSON when it is
// told to end. Or uses as much of a processor as that takes, without any connection.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/histogram.h"
#include "base/system_clock.h"
#include "control/wire/framing.h"

namespace vpfs {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kMostAnswer = 64 << 20;
// Far above what any flow does, so that the load is the same with and without allocations.
constexpr std::uint64_t kBytesPerSecond = 1ULL << 40;
constexpr std::uint64_t kOperationsPerSecond = 1'000'000'000;

struct ControlLoadSettings {
  std::string socket;
  std::uint32_t period_ms = 50;
  std::uint32_t lease_ms = 1000;
  std::size_t flows = 1000;     // it waits for them before it counts
  std::uint32_t patience = 30;  // seconds
  std::uint32_t burn_us = 0;    // each period
};

std::atomic<bool> ended = false;
extern "C" void end(int /*number*/) {
  ended = true;
}

// A blocking connection.
class BlockingConnection {
 public:
  explicit BlockingConnection(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw std::runtime_error("the path is too long");
    std::ranges::copy(path, address.sun_path);
    // The sockets API takes all address types through this one.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      fail(path);
    }
  }
  ~BlockingConnection() { ::close(socket_); }
  BlockingConnection(const BlockingConnection&) = delete;
  BlockingConnection& operator=(const BlockingConnection&) = delete;

  void send(const control::Envelope& envelope) {
    out_.clear();
    if (!control::append_frame(envelope, kMostAnswer, out_)) throw std::runtime_error("too long");
    for (std::size_t sent = 0; sent < out_.size();) {
      const ssize_t size = ::send(socket_, &out_[sent], out_.size() - sent, MSG_NOSIGNAL);
      if (size < 0) fail("send");
      sent += static_cast<std::size_t>(size);
    }
  }

  // Valid until the next call.
  const control::Envelope& receive() {
    for (;;) {
      const auto frame = reader_.next();
      if (!frame) throw std::runtime_error("the stage has lost its framing");
      if (*frame) {
        if (std::exchange(received_, true)) memory_.end(kMostAnswer);
        control::Envelope& envelope = memory_.begin();
        if (!control::decode(**frame, envelope)) throw std::runtime_error("no message");
        if (envelope.has_error()) throw std::runtime_error(envelope.error().text());
        return envelope;
      }
      const auto room = reader_.room();
      const ssize_t size = ::recv(socket_, room.data(), room.size(), 0);
      if (size < 0) fail("receive");
      if (size == 0) throw std::runtime_error("the stage has closed the connection");
      reader_.received(static_cast<std::size_t>(size));
    }
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
  }

  int socket_;
  std::string out_;
  control::FrameReader reader_{kMostAnswer};
  control::MessageMemory memory_;
  bool received_ = false;  // and memory_ holds it
};

class LoadingCoordinator {
 public:
  explicit LoadingCoordinator(const ControlLoadSettings& settings)
      : settings_(settings), stage_(settings.socket) {
    request_.set_id(1);
    control::Hello& hello = *request_.mutable_hello();
    hello.set_version(1);
    hello.set_least(1);
    hello.set_role(control::Hello::COORDINATOR);
    hello.set_name("vpfs-bench-control");
    stage_.send(request_);
    if (!stage_.receive().has_hello()) throw std::runtime_error("the stage does not greet");
  }

  void cycle() {
    ++sequence_;
    request_.set_id(sequence_ + 1);
    control::Cycle& cycle = *request_.mutable_cycle();
    cycle.set_term(term_);
    cycle.set_sequence(sequence_);
    cycle.set_lease_us(std::uint64_t{1000} * settings_.lease_ms);
    cycle.set_want_report(true);
    // Messages are reused, so that sending costs as little as it can.
    while (cycle.allocations_size() < static_cast<int>(flows_.size())) cycle.add_allocations();
    int at = 0;
    for (const auto& [flow, name] : flows_) {
      control::Allocation& allocation = *cycle.mutable_allocations(at++);
      allocation.set_flow(flow);
      allocation.set_bytes_per_second(kBytesPerSecond + sequence_);
      allocation.set_operations_per_second(kOperationsPerSecond + sequence_);
    }
    allocations_ += flows_.size();
    const TimePoint begin = clock_.now();
    stage_.send(request_);
    await_report();
    took_.record(clock_.now() - begin);
    ++cycles_;
  }

  void run() {
    const TimePoint deadline = clock_.now() + std::chrono::seconds(settings_.patience);
    while (flows_.size() < settings_.flows) {
      if (ended || clock_.now() > deadline) {
        throw std::runtime_error(fmt::format("{} virtual PFSes were reported, {} expected",
                                             flows_.size(), settings_.flows));
      }
      cycle();
      std::this_thread::sleep_for(milliseconds(settings_.period_ms));
    }
    std::cout << "ready" << std::endl;
    cycles_ = applied_ = reported_ = allocations_ = 0;
    took_.clear();
    TimePoint next = clock_.now();
    while (!ended) {
      cycle();
      next = std::max(next + milliseconds(settings_.period_ms), clock_.now());
      std::this_thread::sleep_until(next);
    }
  }

  [[nodiscard]] nlohmann::ordered_json results() const {
    const auto mean = [&](std::uint64_t sum) {
      return cycles_ > 0 ? static_cast<double>(sum) / static_cast<double>(cycles_) : 0;
    };
    const auto in_us = [](Duration time) {
      return std::chrono::duration_cast<microseconds>(time).count();
    };
    return {{"cycles", cycles_},
            {"applied", applied_},
            {"flows", flows_.size()},
            {"reported_mean", mean(reported_)},
            {"allocations_mean", mean(allocations_)},
            {"cycle_us_p50", in_us(took_.quantile(0.5))},
            {"cycle_us_p99", in_us(took_.quantile(0.99))}};
  }

 private:
  void await_report() {
    for (;;) {
      const control::Envelope& answer = stage_.receive();
      for (const control::Flow& flow : answer.flows().flows()) flows_[flow.id()] = flow.name();
      if (!answer.has_report() || answer.id() != request_.id()) continue;
      const control::Report& report = answer.report();
      if (report.has_refused()) throw std::runtime_error(report.refused().text());
      applied_ += report.applied() ? 1 : 0;
      reported_ += static_cast<std::uint64_t>(report.flows_size());
      for (const control::FlowReport& flow : report.flows()) {
        if (flow.ended()) flows_.erase(flow.flow());
      }
      return;
    }
  }

  const ControlLoadSettings& settings_;
  SystemClock clock_;
  BlockingConnection stage_;
  control::Envelope request_;
  std::map<std::uint32_t, std::string> flows_;
  // Later runs have later terms.
  const std::uint64_t term_ = static_cast<std::uint64_t>(clock_.now().time_since_epoch().count());
  std::uint64_t sequence_ = 0;
  std::uint64_t cycles_ = 0;
  std::uint64_t applied_ = 0;
  std::uint64_t reported_ = 0;
  std::uint64_t allocations_ = 0;
  LatencyHistogram took_;
};

// Uses the processor alone: neither memory nor locks of others.
void burn(const ControlLoadSettings& settings) {
  const auto used = [] {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  SystemClock clock;
  std::cout << "ready" << std::endl;
  for (TimePoint next = clock.now(); !ended; std::this_thread::sleep_until(next)) {
    const auto enough = used() + microseconds(settings.burn_us);
    while (used() < enough) continue;
    next = std::max(next + milliseconds(settings.period_ms), clock.now());
  }
}

int run(const ControlLoadSettings& settings) {
  if (settings.burn_us > 0) {
    burn(settings);
    return 0;
  }
  LoadingCoordinator coordinator(settings);
  coordinator.run();
  std::cout << coordinator.results().dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  vpfs::ControlLoadSettings settings;
  vpfs::OptionParser app("Plays a coordinator on a control port until SIGTERM.");
  const vpfs::Option socket =
      app.add_option("--socket", settings.socket, "the control socket of a stage");
  vpfs::Option burn = app.add_option("--burn-us", settings.burn_us,
                                     "no coordinator: use so much of a processor each period");
  burn.excludes(socket);
  app.add_option("--period", settings.period_ms, "milliseconds between two cycles").positive();
  app.add_option("--lease", settings.lease_ms, "of allocations, in milliseconds").positive();
  app.add_option("--flows", settings.flows, "virtual PFSes to wait for at the start");
  app.add_option("--patience", settings.patience, "seconds to wait for them");
  if (const auto code = app.parse(argc, argv)) return *code;
  if (settings.socket.empty() && settings.burn_us == 0) {
    std::cerr << "vpfs-bench-control: --socket or --burn-us is needed\n";
    return 2;
  }
  std::signal(SIGTERM, vpfs::end);
  try {
    return vpfs::run(settings);
  } catch (const std::exception& error) {
    std::cerr << "vpfs-bench-control: " << error.what() << '\n';
    return 1;
  }
}
