#include "tools/vpfsctl/output_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace vpfs::ctl {
namespace {

std::unexpected<Error> cannot_write(const std::string& path, int error) {
  return fail(
      fmt::format("{}: cannot be written: {}", path, std::generic_category().message(error)));
}

}  // namespace

OutputFile::~OutputFile() {
  if (!unfinished_.empty()) (void)::unlink(unfinished_.c_str());
}

Result<void> OutputFile::open(const std::string& path, ::mode_t permissions) {
  path_ = path;
  target_ = path;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool is_special =
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  std::string opened = path;
  int flags = O_WRONLY | O_CLOEXEC;
  if (!is_special) {
    const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
    if (!error) target_ = real.string();
    opened = target_ + ".unfinished";
    // One that is there is of a run that was killed, or another user waits there for the contents.
    (void)::unlink(opened.c_str());
    flags |= O_CREAT | O_EXCL | O_NOFOLLOW;
  }
  const int descriptor = ::open(opened.c_str(), flags, permissions);
  if (descriptor < 0) return cannot_write(path_, errno);
  if (!is_special) unfinished_ = opened;
  file_.reset(::fdopen(descriptor, "w"));
  if (file_) return {};
  const int reason = errno;
  ::close(descriptor);
  return cannot_write(path_, reason);
}

void OutputFile::write(std::string_view part) {
  if (error_ == 0 && std::fwrite(part.data(), 1, part.size(), file_.get()) != part.size()) {
    error_ = errno;
  }
}

Result<void> OutputFile::finish() {
  if (error_ == 0 && std::fflush(file_.get()) != 0) error_ = errno;
  // A device or a pipe cannot be synchronized.
  if (error_ == 0 && !unfinished_.empty() && ::fsync(::fileno(file_.get())) != 0) error_ = errno;
  // Some file systems tell only now that there is no room.
  if (std::fclose(file_.release()) != 0 && error_ == 0) error_ = errno;
  if (error_ != 0) return cannot_write(path_, error_);
  if (unfinished_.empty()) return {};
  if (std::rename(unfinished_.c_str(), target_.c_str()) != 0) return cannot_write(path_, errno);
  unfinished_.clear();
  return {};
}

}  // namespace vpfs::ctl
