#include "base/config_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config/parts.h"
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

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// A pipe is as good as a file, so that a shell's <(command) may be given.
enum class MayBeEmpty { no, yes };

Result<std::string> read_text(const std::string& path, MayBeEmpty may_be_empty = MayBeEmpty::no) {
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
  if (text && may_be_empty == MayBeEmpty::no && is_blank(*text)) {
    return fail(is_pipe ? "is a FIFO that nothing is written to" : "is empty");
  }
  return text;
}

// The names of a folder's files that are read, sorted. Editors, rpm and dpkg leave others.
std::vector<std::string> names_in(const std::string& folder, ConfigErrors& errors) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator each(folder, problem);
  for (; !problem && each != fs::directory_iterator(); each.increment(problem)) {
    std::string name = each->path().filename().string();
    const bool is_odd = std::ranges::any_of(
        name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (name.starts_with('.') || is_odd) continue;
    if (name.ends_with(".yml")) {
      errors.warn_about(fmt::format("{}/{}", folder, name),
                        "is not read: its name does not end with .yaml");
    }
    if (name.ends_with(".yaml")) names.push_back(std::move(name));
  }
  const bool is_missing = problem == std::errc::no_such_file_or_directory;
  if (problem && !is_missing) {
    errors.add_about(folder, "cannot be read: " + problem.message());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string config_folder(std::string_view main_file) {
  constexpr std::string_view kEnding = ".yaml";
  if (main_file.ends_with(kEnding)) main_file.remove_suffix(kEnding.size());
  return std::string(main_file) + ".d";
}

std::optional<std::string> read_config_texts(ConfigErrors& errors) {
  std::optional<std::string> text = read_config_text(errors);
  if (!text) return std::nullopt;
  constexpr std::string_view kSecond = "a second YAML document; only one is allowed";
  if (const auto line = line_of_part(*text)) errors.add(*line, "", kSecond);
  const std::string folder = config_folder(errors.file());
  for (const std::string& name : names_in(folder, errors)) {
    const std::string file = fmt::format("{}/{}", folder, name);
    const Result<std::string> part = read_text(file, MayBeEmpty::yes);
    if (!part) {
      errors.add_about(file, part.error().message);
    } else if (const auto line = line_of_part(*part)) {
      errors.add_about(fmt::format("{}:{}", file, *line), kSecond);
    } else {
      add_part(*text, file, *part);
    }
  }
  if (!errors.empty()) return std::nullopt;
  return text;
}

std::optional<std::string> read_config_text(ConfigErrors& errors) {
  Result<std::string> text = read_text(errors.file());
  if (text) return std::move(*text);
  errors.add_final(0, text.error().message);
  return std::nullopt;
}

std::optional<std::string> read_config_stream(int descriptor, ConfigErrors& errors) {
  Result<std::string> text = read_all(descriptor);
  if (text && !is_blank(*text)) return std::move(*text);
  errors.add_final(0, text ? "is empty" : text.error().message);
  return std::nullopt;
}

}  // namespace vpfs
