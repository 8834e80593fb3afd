#include "control/coordinator/links/cycle_log.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/named_file.h"

namespace vpfs::coordinator {
namespace {

double exact_microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

Result<std::unique_ptr<CycleLog>> CycleLog::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | kNoWaiting, 0666);
  std::FILE* const file = descriptor < 0 ? nullptr : ::fdopen(descriptor, "w");
  if (file == nullptr) {
    const std::error_code error(errno, std::system_category());
    if (descriptor >= 0) ::close(descriptor);
    return fail(fmt::format("{}: {}", path, why_not_opened(path, error.value())), error);
  }
  // Whoever reads it while it grows sees whole lines.
  (void)std::setvbuf(file, nullptr, _IOLBF, BUFSIZ);
  std::unique_ptr<CycleLog> log(new CycleLog(path, file));
  if (std::fputs("cycle,stages,total_us,collect_us,compute_us,enforce_us,late\n", file) < 0) {
    log->end("cannot be written");
  }
  return log;
}

CycleLog::~CycleLog() {
  end(nullptr);
}

void CycleLog::end(const char* what) {
  std::FILE* const file = std::exchange(file_, nullptr);
  if (file == nullptr) return;
  const int error = errno;
  const bool closed = std::fclose(file) == 0;
  if (what != nullptr || !closed) {
    spdlog::error(
        "the cycle log {}: {}", path_,
        std::error_code(what != nullptr ? error : errno, std::system_category()).message());
  }
}

void CycleLog::add(const CycleTimes& times) {
  if (file_ == nullptr) return;
  const std::string line =
      fmt::format("{},{},{:.1f},{:.1f},{:.1f},{:.1f},{}\n", times.cycle, times.stages,
                  exact_microseconds(times.total), exact_microseconds(times.collect),
                  exact_microseconds(times.compute), exact_microseconds(times.enforce), times.late);
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size()) end("cannot be written");
}

}  // namespace vpfs::coordinator
