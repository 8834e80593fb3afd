#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "tools/selftest/cost_fit.h"
#include "tools/selftest/phase.h"
#include "tools/selftest/run.h"

namespace vpfs::selftest {

// What the server did with so many requests in flight.
struct DepthRow {
  std::uint64_t in_flight = 0;
  double read = 0;  // MiB/s
  double write = 0;
  Duration read_p99 = {};
  Duration write_p99 = {};
};

struct RatioFinding {
  unsigned wanted = 1;  // so many times the other's
  double got = 0;       // 0 if one got nothing
  double error = 0;     // relative
  double allowed = 0;   // by theory, in the time that was measured
  bool holds = false;
  bool one_got_nothing = false;  // while the other got more than theory allows
  std::string not_judged;        // why
};

struct LimitFinding {
  double wanted = 0;  // MiB/s
  double got = 0;
  double error = 0;
  bool holds = false;
  bool is_judged = true;  // enough requests ended
};

struct PathFinding {
  Duration direct = {};  // median of one small read at a time
  Duration proxy = {};
  double direct_rate = 0;  // MiB/s of large reads
  double proxy_rate = 0;
};

// What to write into the configuration.
struct DepthAdvice {
  std::uint64_t enough = 0;  // requests in flight that give nearly all
  double of = 0;             // the most, MiB/s
  std::uint64_t requests = 0;
  Bytes bytes = {};
  bool is_bound = false;  // by the depth that the proxy had, so more may help
};

struct VerdictLine {
  enum class Kind { good, bad, unknown, note };
  Kind kind = Kind::note;
  std::string text;
};

struct Findings {
  std::vector<DepthRow> depths;
  std::optional<DepthAdvice> depth;
  std::optional<CostFit> costs;
  std::vector<RatioFinding> ratios;
  std::optional<LimitFinding> limit;
  std::optional<PathFinding> path;
  std::vector<VerdictLine> verdict;

  // Nothing was found that does not hold.
  [[nodiscard]] bool good() const;
};

// `share`: what the self-test was held to.
[[nodiscard]] Findings judge(const Record& record, std::optional<BytesPerSecond> share);

}  // namespace vpfs::selftest
