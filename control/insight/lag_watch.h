#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "schedulers/request.h"
#include "stage/history_reading.h"

namespace vpfs::insight {

// How far the service of a virtual PFS was from that of another one while both had requests queued,
// in its own cost, and how far it may be.
struct Lag {
  double lag = 0;
  double bound = 0;
};

struct NamedLag {
  std::string name;  // of the virtual PFS
  Lag lag;
};

// Compares what virtual PFSes got from one reading of a stage to the next with what `sfq` promises
// (docs/schedulers.md): for f and g that had requests queued all the time,
//
//   |W_f/w_f - W_g/w_g| <= (D + 1) (c_f/w_f + c_g/w_g) + K
//
// with the cost really done W, the weight w, the largest cost c of a request and the depth D. K is
// that of anticipation. Rows are read one after the other, so a fault is what exceeds the bound by
// more than the depth and what the server does meanwhile.
//
// Left out are virtual PFSes with a limit or a minimum. So are those whose share has changed, while
// they have requests queued from before, and those that had requests pass before their turn, until
// they have nothing queued.
class LagWatch {
 public:
  // What the scheduler promises.
  struct Promise {
    bool by_weight = false;       // one `sfq` divides the server, and nothing else does
    std::uint64_t depth = 0;      // in requests, the largest of the time
    std::uint64_t scheduler = 0;  // another number: another scheduler since
    bool anticipates = false;
  };
  // Two virtual PFSes whose service was too far apart.
  struct Fault {
    std::string ahead;
    std::string behind;
    double lag = 0;  // by cost and weight, as both of them
    double bound = 0;
  };

  // Judges the time since the last call. The readings are those of all virtual PFSes that were used
  // in it.
  [[nodiscard]] std::optional<Fault> judge(std::span<const stage::HistoryReading> readings,
                                           const Promise& promise);

  // The lags that judge() has just found; those that were not compared with another have none.
  [[nodiscard]] std::span<const NamedLag> lags() const { return lags_; }
  [[nodiscard]] std::uint64_t faults() const { return faults_; }

 private:
  struct Known {
    stage::VirtualPfsId id;
    const stage::VirtualPfsInfo* info = nullptr;  // of the last reading, for comparison only
    TimePoint since = {};                         // when its share was first seen
    bool has_settled = false;                     // what is queued came after that
    TimePoint at = {};
    Cost done = 0;
    Cost largest = 0;  // lately
    Duration held = {};
    Duration limited = {};
    std::uint64_t unscheduled = 0;
    bool passed_early = false;  // and has had something queued ever since
  };
  // One that had requests queued all the time.
  struct Backlogged {
    const stage::HistoryReading* reading = nullptr;
    double weight = 1;
    double service = 0;  // by weight
    double request = 0;  // the largest, by weight
  };

  void compare(const stage::HistoryReading& reading);
  void note(const Backlogged& who, const Backlogged& other, double factor, double more);

  std::vector<Known> known_;  // by AppId
  std::vector<Backlogged> backlogged_;
  double done_ = 0;  // by all, since the last call
  Duration length_ = {};
  TimePoint earliest_ = {};  // of the readings
  TimePoint latest_ = {};
  std::optional<std::uint64_t> scheduler_;  // of the last call
  std::vector<NamedLag> lags_;
  std::uint64_t faults_ = 0;
};

}  // namespace vpfs::insight
