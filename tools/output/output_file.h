#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "net/descriptor.h"

namespace vpfs::output {

// A file that a command writes. One that is there stays until the new one is whole, and a link to
// it stays a link. A device or a pipe is written as it is. Two runs do not write the same file at
// once.
class OutputFile {
 public:
  OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  // What is not finished is removed.
  ~OutputFile();

  // `permissions`: of the new file, less the umask. Errors name the path, here and in finish().
  [[nodiscard]] Result<void> open(const std::string& path, ::mode_t permissions);
  // REQUIRES: it is open. An error shows in finish().
  void write(std::string_view part);
  // All of it is on the disk then, and under its name.
  [[nodiscard]] Result<void> finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;        // as the command line has it
  std::string target_;      // where that leads to
  std::string unfinished_;  // the file beside it; "": there is none
  net::Descriptor lock_;    // of that file, until it has its name
  std::unique_ptr<std::FILE, Close> file_;
  int error_ = 0;  // the first, as errno has it
};

}  // namespace vpfs::output
