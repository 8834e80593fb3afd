#include "base/config_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

namespace vpfs {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} * 1024 * 1024;

std::unexpected<Error> failed(const std::string& path, int number) {
  const std::error_code error(number, std::generic_category());
  return fail(fmt::format("{}: cannot be read: {}", path, error.message()), error);
}

}  // namespace

Result<std::string> read_config_file(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return fail(path + ": is a directory, not a file",
                std::make_error_code(std::errc::is_a_directory));
  }
  const auto close = [](std::FILE* file) { (void)std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return failed(path, errno);

  std::string text;
  char part[4096];
  for (std::size_t size = sizeof part; size == sizeof part;) {
    size = std::fread(part, 1, sizeof part, file.get());
    text.append(part, size);
    if (text.size() > kMostBytes) {
      return fail(fmt::format("{}: is larger than {} MiB, so it is no configuration", path,
                              kMostBytes >> 20));
    }
  }
  if (std::ferror(file.get()) != 0) return failed(path, errno);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return fail(path + ": is empty");
  return text;
}

}  // namespace vpfs
