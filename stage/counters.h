#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/histogram.h"
#include "base/io_kind.h"
#include "schedulers/hold_times.h"
#include "schedulers/request.h"

namespace vpfs::stage {

struct Amount {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;

  void add(Bytes size) {
    ++requests;
    bytes += size.count;
  }
  void take(Bytes size) {
    --requests;
    bytes -= size.count;
  }
  Amount& operator+=(const Amount& other) {
    requests += other.requests;
    bytes += other.bytes;
    return *this;
  }
};

// Amounts for each kind of request.
struct Amounts : std::array<Amount, kIoKinds> {
  [[nodiscard]] Amount& of(IoKind kind) { return (*this)[std::to_underlying(kind)]; }
  [[nodiscard]] const Amount& of(IoKind kind) const { return (*this)[std::to_underlying(kind)]; }
  [[nodiscard]] Amount all() const {
    Amount sum;
    for (const Amount& each : *this) sum += each;
    return sum;
  }
  Amounts& operator+=(const Amounts& other) {
    for (std::size_t i = 0; i < size(); ++i) (*this)[i] += other[i];
    return *this;
  }
};

// What one virtual PFS asked for and got since it is there. Only `queued` and `outstanding` ever go
// down. Bytes are what a request is expected to move; of what is done and failed, what it moved.
struct Counters {
  Amounts arrived;
  Amounts sent;     // to the data server
  Amounts done;     // answered by it, errors among them
  Amounts failed;   // answered with an error
  Amounts refused;  // held up to the deadline, or more than a client may have held

  // What was charged when requests were sent, and what they took in the end. One that moved less
  // than was expected took less, so their difference is no measure of what is outstanding.
  Cost cost_sent = 0;
  Cost cost_done = 0;

  std::uint64_t excess = 0;    // sent back because their client had too many waiting
  std::uint64_t given_up = 0;  // outstanding without an end in sight

  // For how long the heads of its queues waited (see schedulers/hold_times.h): one in each lane and
  // traffic class. While a virtual PFS is there its schedulers know the rest (Stage adds it).
  HoldTimes held;

  Amount queued;
  Amount outstanding;

  // Adds another's history, which has nothing queued or outstanding.
  Counters& operator+=(const Counters& other);
};

struct Histograms {
  LatencyHistogram wait;     // arrival to dispatch
  LatencyHistogram service;  // dispatch to the last byte
};

}  // namespace vpfs::stage
