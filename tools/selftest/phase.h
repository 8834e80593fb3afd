#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

// What a self-test does with a server and its proxy, and what it has seen.
namespace vpfs::selftest {

enum class Path { direct, proxy };

// What a measurement is for.
enum class Purpose {
  check,      // that the load passes the proxy
  depth,      // what the server does with so many requests in flight
  cost,       // what a request takes beside its bytes
  path_cost,  // what the proxy adds
  weights,    // whether shares hold
  limit       // whether a rate holds
};

// One measurement. Its applications are alike, and differ in their weights alone.
struct Phase {
  Purpose purpose = Purpose::check;
  Path path = Path::proxy;
  bool reads = false;
  Bytes size = {kMiB};            // of each request
  std::uint64_t in_flight = 1;    // of each application
  std::vector<unsigned> weights;  // of the applications; none: there is one
  Duration length = {};           // with the warm-up
  bool operator==(const Phase&) const = default;

  [[nodiscard]] std::size_t applications() const { return weights.empty() ? 1 : weights.size(); }
  [[nodiscard]] Duration warm_up() const { return length / 5; }
};

// What one application has got.
struct Got {
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  Duration median = {};  // of its answers
  Duration p99 = {};
};

struct Measurement {
  Phase phase;
  std::vector<Got> applications;
  Duration length = {};          // without the warm-up
  double processors = 0;         // that the load itself took
  BytesPerSecond limit = {};     // that held; 0: none
  double others_per_second = 0;  // bytes of other applications at the proxy

  [[nodiscard]] double mib_per_second() const;
  [[nodiscard]] double mib_per_second(std::size_t application) const;
  [[nodiscard]] double requests_per_second() const;
};

}  // namespace vpfs::selftest
