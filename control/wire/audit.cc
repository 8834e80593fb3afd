#include "control/wire/audit.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/named_file.h"
#include "base/system_clock.h"

namespace vpfs::control {
namespace {

std::string line_of(std::string_view who, std::string_view from, std::string_view command,
                    std::string_view result) {
  const std::time_t at = std::chrono::system_clock::to_time_t(wall_clock_now());
  nlohmann::ordered_json json;
  json["at"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(at));
  json["who"] = who;
  json["from"] = from;
  json["command"] = command;
  json["result"] = result;
  return json_text(json) + "\n";
}

}  // namespace

Audit::Audit(const Clock& clock, Limits limits)
    : clock_(clock), limits_(limits), tokens_(limits.burst), filled_at_(clock.now()) {}

Audit::~Audit() {
  if (file_ >= 0) ::close(file_);
}

Result<void> Audit::open(const std::string& path) {
  int file = -1;
  if (!path.empty()) {
    // A command does not wait for a slow reader of a FIFO: its line is lost, and counted.
    file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | kNoWaiting, 0640);
    if (file < 0) {
      const std::error_code error(errno, std::system_category());
      return fail(fmt::format("control.audit: {}: {}", path, why_not_opened(path, error.value())),
                  error);
    }
  }
  const std::lock_guard lock(mutex_);
  if (file_ >= 0) ::close(file_);
  file_ = file;
  path_ = path;
  failing_ = torn_ = false;
  return {};
}

void Audit::reopen() {
  std::unique_lock lock(mutex_);
  const std::string path = path_;
  lock.unlock();
  if (const Result<void> opened = open(path); !opened) spdlog::error("{}", opened.error().message);
}

void Audit::record(const Caller& caller, std::string_view command, std::string_view result,
                   bool refused) {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) return;
  if (refused && !may_write_refusal()) {
    ++unwritten_refusals_;
    return;
  }
  if (unwritten_refusals_ > 0) {
    const std::uint64_t count = std::exchange(unwritten_refusals_, 0);
    write(line_of("", "", "", fmt::format("{} refused requests have no line", count)));
  }
  write(line_of(caller.name, caller.from, command, result));
}

bool Audit::may_write_refusal() {
  const TimePoint now = clock_.now();
  const double seconds = std::chrono::duration<double>(now - filled_at_).count();
  tokens_ = std::min(limits_.burst, tokens_ + seconds * limits_.each_second);
  filled_at_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

void Audit::write(std::string line) {
  if (torn_) line.insert(0, "\n");
  ssize_t written = 0;
  do {
    written = ::write(file_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) {
    ++lines_;
    torn_ = failing_ = false;
    return;
  }
  // A disk may have had room for a part.
  torn_ = torn_ || written > 0;
  failed(written < 0 ? errno : ENOSPC);
}

void Audit::failed(int problem) {
  ++lost_;
  if (std::exchange(failing_, true)) return;
  spdlog::error("audit log {}: {}; commands run, but have no line", path_,
                std::error_code(problem, std::system_category()).message());
}

std::uint64_t Audit::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

std::uint64_t Audit::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace vpfs::control
