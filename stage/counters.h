#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/histogram.h"
#include "base/io_kind.h"
#include "schedulers/hold_times.h"
#include "schedulers/request.h"
#include "stage/statistics.h"

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
  template <typename Archive>
  void archive(Archive& fields) {
    fields("requests", requests);
    fields("bytes", bytes);
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
  template <typename Archive>
  void archive(Archive& fields) {
    fields("read", of(IoKind::read));
    fields("write", of(IoKind::write));
    fields("metadata", of(IoKind::metadata));
  }
  Amounts& operator+=(const Amounts& other) {
    for (std::size_t i = 0; i < size(); ++i) (*this)[i] += other[i];
    return *this;
  }
};

// The requests and service of one virtual PFS since its beginning. Only `queued` and `outstanding`
// go down. Bytes are the expected ones; `done` and `failed` count the bytes that were moved.
struct Counters {
  Amounts arrived;
  Amounts sent;     // to the data server
  Amounts done;     // answered by it, errors among them
  Amounts failed;   // answered with an error
  Amounts refused;  // held up to the deadline, or beyond the client's allowance

  // The cost charged when requests were sent, and the cost that they took in the end. A request
  // that moved less than expected took less, so the difference does not measure what is
  // outstanding. Unscheduled requests are charged nothing.
  Cost cost_sent = 0;
  Cost cost_done = 0;

  std::uint64_t excess = 0;    // sent back because their client had too many waiting
  std::uint64_t given_up = 0;  // outstanding without an end in sight
  // Sent although a coordinator's limit did not allow it, for they had waited for long.
  std::uint64_t passed_limit = 0;

  // For how long the heads of its queues were held (see schedulers/hold_times.h); there is a queue
  // in each lane and traffic class. Its present schedulers know the rest, which Stage adds.
  HoldTimes held;
  // For how long at least one of its requests was kept back because its client was slow.
  Duration slow_client = {};

  Amount queued;
  Amount outstanding;

  // Without `queued` and `outstanding`, which are what is there.
  template <typename Archive>
  void archive(Archive& fields) {
    fields("arrived", arrived);
    fields("sent", sent);
    fields("done", done);
    fields("failed", failed);
    fields("refused", refused);
    fields("cost_sent", cost_sent);
    fields("cost_done", cost_done);
    fields("excess", excess);
    fields("given_up", given_up);
    fields("passed_limit", passed_limit);
    fields("held", held);
    fields("slow_client", slow_client);
  }

  // Adds the history of another virtual PFS without queued or outstanding requests.
  Counters& operator+=(const Counters& other);
};

// What a virtual PFS has beside its counters once something was sent.
struct Histograms {
  LatencyHistogram wait;     // arrival to dispatch
  LatencyHistogram service;  // dispatch to the last byte
  IoStatistics statistics;
  Amount unscheduled;  // of those sent: exempt, or during a bypass
  // Since Stage::read_history() read them:
  Duration longest_wait = {};
  Cost largest = 0;  // of those sent, and of those done

  void merge(const Histograms& other);

  template <typename Archive>
  void archive(Archive& fields) {
    fields("wait", wait);
    fields("service", service);
    fields("statistics", statistics);
    fields("unscheduled", unscheduled);
    fields("longest_wait", longest_wait);
    fields("largest", largest);
  }
};

}  // namespace vpfs::stage
