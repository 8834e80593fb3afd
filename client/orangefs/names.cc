#include "client/orangefs/names.h"

#include <system_error>

namespace vpfs::client {
namespace {

bool is_dots(std::string_view name) {
  return name == "." || name == "..";
}

std::unexpected<Error> refuse(const char* problem, std::errc code) {
  return fail(problem, std::make_error_code(code));
}

}  // namespace

Result<void> check_name(std::string_view name) {
  if (name.size() > kLongestName) {
    return refuse("the name is longer than 255 bytes", std::errc::filename_too_long);
  }
  const bool strange = name.empty() || is_dots(name) || name.find('/') != std::string_view::npos ||
                       name.find('\0') != std::string_view::npos;
  if (strange) return refuse("not a name of a directory entry", std::errc::invalid_argument);
  return {};
}

Result<void> check_new_name(std::string_view name) {
  if (is_dots(name)) return refuse("'.' and '..' exist already", std::errc::file_exists);
  return check_name(name);
}

Result<void> check_link_target(std::string_view target) {
  if (target.size() > kLongestLinkTarget) {
    return refuse("the link's target is longer than 4095 bytes", std::errc::filename_too_long);
  }
  if (target.empty()) {
    return refuse("the link's target is empty", std::errc::no_such_file_or_directory);
  }
  if (target.find('\0') != std::string_view::npos) {
    return refuse("the link's target has a NUL", std::errc::invalid_argument);
  }
  return {};
}

}  // namespace vpfs::client
