#include "control/wire/accounts.h"

#include <cerrno>
#include <cstddef>
#include <vector>

#include <grp.h>
#include <pwd.h>

namespace vpfs::control {
namespace {

// Calls a function of the getpwnam_r family with a buffer that is large enough.
template <typename Entry, typename Call>
bool look_up(Entry& entry, std::vector<char>& buffer, Call call) {
  constexpr std::size_t kMostBuffer = 1U << 22;  // groups may have many members
  for (buffer.resize(4096); buffer.size() <= kMostBuffer; buffer.resize(4 * buffer.size())) {
    Entry* found = nullptr;
    const int problem = call(&entry, buffer.data(), buffer.size(), &found);
    if (problem != ERANGE) return problem == 0 && found != nullptr;
  }
  return false;
}

}  // namespace

std::optional<std::uint32_t> user_id(const std::string& name) {
  passwd entry = {};
  std::vector<char> buffer;
  const auto call = [&](auto... rest) { return ::getpwnam_r(name.c_str(), rest...); };
  if (!look_up(entry, buffer, call)) return std::nullopt;
  return entry.pw_uid;
}

std::optional<std::uint32_t> group_id(const std::string& name) {
  group entry = {};
  std::vector<char> buffer;
  const auto call = [&](auto... rest) { return ::getgrnam_r(name.c_str(), rest...); };
  if (!look_up(entry, buffer, call)) return std::nullopt;
  return entry.gr_gid;
}

std::optional<std::string> user_name(std::uint32_t uid) {
  passwd entry = {};
  std::vector<char> buffer;
  const auto call = [&](auto... rest) { return ::getpwuid_r(uid, rest...); };
  if (!look_up(entry, buffer, call)) return std::nullopt;
  return entry.pw_name;
}

std::optional<std::string> group_name(std::uint32_t gid) {
  group entry = {};
  std::vector<char> buffer;
  const auto call = [&](auto... rest) { return ::getgrgid_r(gid, rest...); };
  if (!look_up(entry, buffer, call)) return std::nullopt;
  return entry.gr_name;
}

}  // namespace vpfs::control
