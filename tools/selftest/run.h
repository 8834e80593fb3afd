#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "tools/load/report.h"
#include "tools/load/settings.h"
#include "tools/selftest/owner.h"
#include "tools/selftest/phase.h"
#include "tools/selftest/proxy.h"
#include "tools/selftest/settings.h"

namespace vpfs::selftest {

// What a self-test needs of this host.
struct Means {
  const Clock& clock;
  std::function<Result<load::RunResult>(const load::LoadSettings&)> load;
  std::function<void(Duration)> pause;
  std::function<void(const std::string&)> say;  // a line of progress
  std::function<bool()> stopped;                // a signal wants it to end
  std::function<bool(const LoadProcess&)> has_ended;
  LoadProcess self;
};

// What was measured, and with what.
struct Record {
  ProxyState proxy;  // at the beginning
  std::vector<Measurement> measurements;
  std::string no_weights;  // why shares were not measured
  std::string no_limit;
};

// Measures. It refuses a proxy that is busy, unless the settings allow it, and one where another
// self-test runs. Its rules are gone afterwards; those of a self-test that was killed go at once,
// or by themselves within two minutes after the time that it was to take.
//
// An error is one line for people.
[[nodiscard]] Result<Record> run(const Settings& settings, TestedProxy& proxy, const Means& means);

// Ends the rules of all self-tests at this proxy, whoever started them, and returns how many. It
// refuses, and ends none, if the process of one `is_running`.
[[nodiscard]] Result<std::size_t> end_rules(
    TestedProxy& proxy, const std::function<bool(const LoadProcess&)>& is_running);

}  // namespace vpfs::selftest
