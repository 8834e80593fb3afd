#include "base/log/log_file.h"

#include <cerrno>

#include <unistd.h>

#include "base/named_file.h"

namespace vpfs {

void LogFile::reopen(TimePoint now) {
  tried_ = now;
  was_tried_ = true;
  file_.reset();
  const int descriptor = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | kNoWaiting, 0666);
  if (descriptor >= 0) file_.reset(::fdopen(descriptor, "a"));
  if (file_ == nullptr) {
    const std::error_code error(errno, std::generic_category());
    problem_ = {.message = "log file " + path_ + ": " + why_not_opened(path_, error.value()),
                .code = error};
    if (descriptor >= 0) ::close(descriptor);
    return;
  }
  // Each fwrite is a write.
  (void)std::setvbuf(file_.get(), nullptr, _IONBF, 0);
}

Result<void> LogFile::append(std::string_view line, TimePoint now) {
  if (file_ == nullptr && (!was_tried_ || now - tried_ >= kRetry)) reopen(now);
  if (file_ == nullptr) return std::unexpected(problem_);
  std::clearerr(file_.get());
  errno = 0;
  const bool begun = !torn_ || std::fwrite("\n", 1, 1, file_.get()) == 1;
  if (begun) {
    const std::size_t size = std::fwrite(line.data(), 1, line.size(), file_.get());
    torn_ = size > 0 && size < line.size();
    if (size == line.size()) return {};
  }
  const std::error_code error(errno, std::generic_category());
  return fail("log file " + path_ + ": " + error.message(), error);
}

}  // namespace vpfs
