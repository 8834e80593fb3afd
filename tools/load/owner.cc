#include "tools/load/owner.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace vpfs::load {

LoadProcess this_owner() {
  std::array<char, 65> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) name[0] = '\0';
  std::string host;
  for (const char* each = name.data(); *each != '\0'; ++each) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(*each)) != 0;
    host += is_plain ? *each : '-';
  }
  return {.host = std::move(host), .pid = ::getpid()};
}

std::string owner_text(const LoadProcess& owner) {
  return fmt::format("{}.{}", owner.host, owner.pid);
}

std::optional<LoadProcess> parse_owner(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  LoadProcess owner = {.host = std::string(text.substr(0, dot)), .pid = 0};
  text.remove_prefix(dot + 1);
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), owner.pid);
  if (problem != std::errc() || end != text.data() + text.size() || owner.pid <= 0) {
    return std::nullopt;
  }
  return owner;
}

bool has_ended(const LoadProcess& owner) {
  return owner.host == this_owner().host && ::kill(owner.pid, 0) != 0 && errno == ESRCH;
}

bool is_running(const LoadProcess& owner) {
  return owner.host == this_owner().host && !has_ended(owner);
}

}  // namespace vpfs::load
