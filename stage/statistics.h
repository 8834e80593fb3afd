#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/io_kind.h"
#include "base/units.h"
#include "base/wide.h"

namespace vpfs::stage {

// The samples of one property of requests, as Lustre's job_stats have it. A sum that would overflow
// stays at its largest value.
struct Statistic {
  std::uint64_t samples = 0;
  std::uint64_t min = 0;  // zero without samples
  std::uint64_t max = 0;
  std::uint64_t sum = 0;
  Wide sum_of_squares = 0;

  void add(std::uint64_t value) {
    if (value < min || samples == 0) min = value;
    if (value > max) max = value;
    ++samples;
    if (__builtin_add_overflow(sum, value, &sum)) sum = UINT64_MAX;
    add_squares(Wide{value} * value);
  }
  void merge(const Statistic& other);
  template <typename Archive>
  void archive(Archive& fields) {
    fields("samples", samples);
    fields("min", min);
    fields("max", max);
    fields("sum", sum);
    fields("sum_of_squares", sum_of_squares);
  }

 private:
  void add_squares(Wide squares) {
    if (__builtin_add_overflow(sum_of_squares, squares, &sum_of_squares)) sum_of_squares = ~Wide{0};
  }
};

// The finished reads and writes of one virtual PFS, those that failed included: the bytes that they
// moved, and their time in microseconds from their arrival at the stage to their end. (Lustre takes
// the time in its server's hands; here it includes the time for which the stage held the request.)
struct IoStatistics {
  // In this order a request touches few cache lines.
  TimePoint since = {};  // the first request was sent
  TimePoint last = {};   // a read or write ended; as `since` before
  Statistic read_bytes;
  Statistic read_time;
  Statistic write_bytes;
  Statistic write_time;

  // Metadata requests do not count.
  void record(IoKind kind, Bytes moved, Duration time, TimePoint now);
  void merge(const IoStatistics& other);
  template <typename Archive>
  void archive(Archive& fields) {
    fields("since", since);
    fields("last", last);
    fields("read_bytes", read_bytes);
    fields("read_time", read_time);
    fields("write_bytes", write_bytes);
    fields("write_time", write_time);
  }
};

}  // namespace vpfs::stage
