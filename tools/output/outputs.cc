#include "tools/output/outputs.h"

#include <cstddef>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>

#include "tools/output/output_file.h"

namespace vpfs::output {
namespace {

namespace fs = std::filesystem;

// The one of whole files that both names lead to. Devices and pipes keep nothing.
bool is_same_file(const std::string& one, const std::string& other) {
  struct stat first = {};
  struct stat second = {};
  const bool has_one = ::stat(one.c_str(), &first) == 0;
  const bool has_other = ::stat(other.c_str(), &second) == 0;
  if (has_one && has_other) {
    return S_ISREG(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  }
  if (has_one || has_other) return false;
  std::error_code error;
  return fs::weakly_canonical(one, error) == fs::weakly_canonical(other, error);
}

}  // namespace

std::string problem_of(const std::vector<Output>& outputs, const std::vector<std::string>& inputs) {
  std::string problems;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    if (output.path.empty()) continue;
    for (const std::string& input : inputs) {
      if (!is_same_file(output.path, input)) continue;
      problems += fmt::format("{}: {} would replace {}, which is read\n", output.option,
                              output.path, input);
      break;
    }
    for (std::size_t before = 0; before < i; ++before) {
      const Output& other = outputs[before];
      if (output.path != other.path && !is_same_file(output.path, other.path)) continue;
      problems +=
          fmt::format("{}: {} is the file of {}\n", output.option, output.path, other.option);
    }
  }
  return problems;
}

Result<void> write_whole(const std::string& path, std::string_view text) {
  OutputFile file;
  VPFS_TRY(file.open(path, 0666));
  file.write(text);
  return file.finish();
}

}  // namespace vpfs::output
