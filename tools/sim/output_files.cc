#include "tools/sim/output_files.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vpfs::sim_tool {
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

std::unexpected<Error> cannot_write(const std::string& path, int error) {
  return fail(
      fmt::format("{}: cannot be written: {}", path, std::generic_category().message(error)));
}

// Zero, or an errno. Closes the file.
int write_all(int file, std::string_view text, bool is_special) {
  int error = 0;
  while (error == 0 && !text.empty()) {
    const ::ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  // A device or a pipe cannot be synchronized.
  if (error == 0 && !is_special && ::fsync(file) != 0) error = errno;
  // Some file systems tell only now that there is no room.
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

// As the permissions of a file that open() makes.
::mode_t permissions() {
  const ::mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
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

Result<void> write_whole_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const int error = file < 0 ? errno : write_all(file, text, true);
    if (error != 0) return cannot_write(path, error);
    return {};
  }
  const fs::path real = fs::weakly_canonical(path, ignored);
  const std::string target = real.empty() ? path : real.string();
  std::string unfinished = target + ".XXXXXX";
  const int file = ::mkostemp(unfinished.data(), O_CLOEXEC);
  if (file < 0) return cannot_write(path, errno);
  int error = ::fchmod(file, permissions()) != 0 ? errno : 0;
  if (error == 0) {
    error = write_all(file, text, false);
  } else {
    (void)::close(file);
  }
  if (error == 0 && std::rename(unfinished.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  (void)::unlink(unfinished.c_str());
  return cannot_write(path, error);
}

}  // namespace vpfs::sim_tool
