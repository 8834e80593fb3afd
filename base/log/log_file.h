#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs {

// A file that log lines are appended to. Each line is one write, so several processes may share
// the file. Not thread-safe.
//
// While the file cannot be opened or written (no directory, no permission, a full disk), append()
// fails, and the caller has to put its lines elsewhere. It tries again by itself, in the case of a
// file that cannot be opened at most every kRetry. Nothing waits: a FIFO without a reader cannot
// be opened, and one whose reader is slow cannot be written.
class LogFile {
 public:
  static constexpr Duration kRetry = std::chrono::seconds(5);

  explicit LogFile(std::string path) : path_(std::move(path)) {}

  // Closes the file and opens it anew, for programs that rename log files.
  void reopen(TimePoint now);
  // `line` ends with a newline. After an error nothing, or only a part of the line, is in the file.
  [[nodiscard]] Result<void> append(std::string_view line, TimePoint now);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };

  const std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  Error problem_;         // while it is closed
  TimePoint tried_ = {};  // to open it
  bool was_tried_ = false;
  bool torn_ = false;  // the file may end in the middle of a line
};

}  // namespace vpfs
