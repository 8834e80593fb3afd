#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "control/wire/rights.h"

namespace vpfs::control {

// The log of changes and the users who made them: one JSON line {"at", "who", "from", "command",
// "result"} for each request that changes something, refused ones included.
//
// A line that cannot be written (a full disk) is counted, and logged once until one can be written
// again; the command runs all the same: on the bad day an administrator must be able to act. At
// most 1,000 refused requests, and then ten a second, have a line of their own; another line says
// how many had none. Any thread may call it; each line is one write.
class Audit {
 public:
  // How many refused requests may have a line, at once and each second.
  struct Limits {
    double burst = 1000;
    double each_second = 10;
  };

  explicit Audit(const Clock& clock) : Audit(clock, Limits()) {}
  Audit(const Clock& clock, Limits limits);
  ~Audit();
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  // Writes to this file from now on ("": nowhere), opened anew even if it is the same, as after a
  // rotation of logs. On an error everything stays as it was.
  [[nodiscard]] Result<void> open(const std::string& path);
  // The same path anew. A problem is logged, and lines go where they went. The thread of open().
  void reopen();

  void record(const Caller& caller, std::string_view command, std::string_view result,
              bool refused);

  [[nodiscard]] std::uint64_t lines() const;
  // Lines that could not be written.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  [[nodiscard]] bool may_write_refusal();
  void write(std::string line);
  void failed(int problem);

  const Clock& clock_;
  const Limits limits_;
  mutable std::mutex mutex_;
  std::string path_;
  int file_ = -1;
  std::uint64_t lines_ = 0;
  std::uint64_t lost_ = 0;
  bool failing_ = false;
  bool torn_ = false;  // the file ends with a part of a line
  double tokens_;      // refused requests that may have a line
  TimePoint filled_at_;
  std::uint64_t unwritten_refusals_ = 0;
};

}  // namespace vpfs::control
