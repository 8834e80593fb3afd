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

Result<std::string> read_text(const std::string& path) {
  const auto failed = [](int number) {
    return fail("cannot be read: " + std::generic_category().message(number));
  };
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return fail("is a directory, not a file");
  const auto close = [](std::FILE* file) { (void)std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return failed(errno);

  std::string text;
  char part[4096];
  for (std::size_t size = sizeof part; size == sizeof part;) {
    size = std::fread(part, 1, sizeof part, file.get());
    text.append(part, size);
    if (text.size() > kMostBytes) {
      return fail(
          fmt::format("is larger than {} MiB, so it is no configuration", kMostBytes >> 20));
    }
  }
  if (std::ferror(file.get()) != 0) return failed(errno);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return fail("is empty");
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
