#pragma once

#include <string>

#include "tools/load/report.h"
#include "tools/load/settings.h"
#include "tools/selftest/phase.h"
#include "tools/selftest/settings.h"

namespace vpfs::selftest {

// What the job of an application is called, "vpfs-selftest-a". On BeeGFS its files are in a
// directory of this entry id.
[[nodiscard]] std::string job_of(std::size_t application);

// The load of a phase. `proxy` is the proxy's name, which its files have too: another self-test in
// the same directory, of another server, has other files. They are the same in each phase.
[[nodiscard]] load::LoadSettings load_of(const Settings& settings, const Phase& phase,
                                         const std::string& proxy);

// What the load has shown.
[[nodiscard]] Measurement measured(const Phase& phase, const load::RunResult& result);

}  // namespace vpfs::selftest
