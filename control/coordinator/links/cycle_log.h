#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs::coordinator {

// What one cycle took.
struct CycleTimes {
  std::uint64_t cycle = 0;
  std::size_t stages = 0;
  std::size_t late = 0;
  Duration total = {};
  Duration collect = {};  // from asking until the last report; zero where reports are there already
  Duration compute = {};
  Duration enforce = {};  // from sending until the last answer
};

// Writes a line of CSV for each cycle:
// cycle,stages,total_us,collect_us,compute_us,enforce_us,late (microseconds with a fraction).
class CycleLog {
 public:
  // The error names the file.
  [[nodiscard]] static Result<std::unique_ptr<CycleLog>> open(const std::string& path);
  ~CycleLog();
  CycleLog(const CycleLog&) = delete;
  CycleLog& operator=(const CycleLog&) = delete;

  // A full disk is logged once, and ends the log.
  void add(const CycleTimes& times);

 private:
  CycleLog(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  void end(const char* what);

  std::string path_;
  std::FILE* file_;  // null: it has ended
};

}  // namespace vpfs::coordinator
