// Linked into every test program: makes spdlog's logger before main begins.
//
// Otherwise the first thread that logs makes it. TSan does not see how libspdlog, which is built
// without it, hands the logger to the next thread, and reports a race.
#include <spdlog/spdlog.h>

namespace {

[[maybe_unused]] const auto made_before_main = spdlog::default_logger();

}  // namespace
