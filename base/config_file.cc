#include "base/config_file.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named_file.h"

namespace vpfs {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} * 1024 * 1024;
// How long the writer of a pipe may pause.
constexpr int kPatienceMs = 5000;

std::unexpected<Error> failed(int number) {
  return fail("cannot be read: " + std::generic_category().message(number));
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | kNoWaiting)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

Result<std::string> read_all(int file) {
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t size = ::read(file, part.data(), part.size());
    if (size == 0) return text;
    if (size < 0 && errno == EAGAIN) {
      pollfd readable = {.fd = file, .events = POLLIN, .revents = 0};
      if (::poll(&readable, 1, kPatienceMs) == 0) {
        return fail(
            fmt::format("is a FIFO whose writer sends nothing for {} s", kPatienceMs / 1000));
      }
      continue;
    }
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failed(errno);
    text.append(part.data(), static_cast<std::size_t>(size));
    if (text.size() > kMostBytes) {
      return fail(
          fmt::format("is larger than {} MiB, so it is not a configuration", kMostBytes >> 20));
    }
  }
}

// A pipe is as good as a file, so that a shell's <(command) may be given.
Result<std::string> read_text(const std::string& path) {
  struct stat there = {};
  // Opening a device may do something, so it is looked at first.
  if (::stat(path.c_str(), &there) != 0) return failed(errno);
  const bool is_pipe = S_ISFIFO(there.st_mode);
  if (!is_pipe && !S_ISREG(there.st_mode)) {
    return fail(fmt::format("is {}, not a file", kind_of_file(there.st_mode)));
  }
  const OpenFile file(path);
  if (file.get() < 0) return failed(errno);
  Result<std::string> text = read_all(file.get());
  if (text && text->find_first_not_of(" \t\r\n") == std::string::npos) {
    return fail(is_pipe ? "is a FIFO that nothing is written to" : "is empty");
  }
  return text;
}

}  // namespace

std::optional<std::string> read_config_text(ConfigErrors& errors) {
  Result<std::string> text = read_text(errors.file());
  if (text) return std::move(*text);
  errors.add_final(0, text.error().message);
  return std::nullopt;
}

}  // namespace vpfs
