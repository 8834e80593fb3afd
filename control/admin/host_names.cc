#include "control/admin/host_names.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>

namespace vpfs::control {
namespace {

// An entry longer than this counts as not found.
constexpr std::size_t kLongestEntry = std::size_t{1} << 20U;

// `look(buffer)` is one of the reentrant look-ups; ERANGE asks for a larger buffer.
template <typename Look>
void with_buffer(Look&& look) {
  std::vector<char> buffer(1024);
  while (look(buffer) == ERANGE && buffer.size() < kLongestEntry) buffer.resize(2 * buffer.size());
}

std::optional<std::uint32_t> look_up_user(const std::string& name) {
  passwd entry = {};
  passwd* found = nullptr;
  with_buffer([&](std::vector<char>& buffer) {
    return getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  });
  return found == nullptr ? std::nullopt : std::optional<std::uint32_t>(found->pw_uid);
}

std::optional<std::uint32_t> look_up_group(const std::string& name) {
  group entry = {};
  group* found = nullptr;
  with_buffer([&](std::vector<char>& buffer) {
    return getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  });
  return found == nullptr ? std::nullopt : std::optional<std::uint32_t>(found->gr_gid);
}

std::vector<std::string> look_up_host(const std::string& host) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  std::vector<std::string> found;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &list) != 0) return found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    std::array<char, INET6_ADDRSTRLEN> text = {};
    const void* address = nullptr;
    if (each->ai_family == AF_INET) {
      address = &reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr;
    } else if (each->ai_family == AF_INET6) {
      address = &reinterpret_cast<const sockaddr_in6*>(each->ai_addr)->sin6_addr;
    }
    if (address == nullptr) continue;
    if (inet_ntop(each->ai_family, address, text.data(), text.size()) == nullptr) continue;
    if (std::ranges::find(found, text.data()) == found.end()) found.emplace_back(text.data());
  }
  freeaddrinfo(list);
  return found;
}

// The kept answer, or that of `look_up`.
template <typename Answers, typename LookUp>
typename Answers::mapped_type answer(Answers& answers, const std::string& name, LookUp&& look_up) {
  const auto known = answers.find(name);
  if (known != answers.end()) return known->second;
  return answers.emplace(name, look_up(name)).first->second;
}

}  // namespace

std::optional<std::uint32_t> HostNames::user(const std::string& name) const {
  return answer(users_, name, look_up_user);
}

std::optional<std::uint32_t> HostNames::group(const std::string& name) const {
  return answer(groups_, name, look_up_group);
}

std::vector<std::string> HostNames::addresses(const std::string& host) const {
  return answer(hosts_, host, look_up_host);
}

void HostNames::forget() {
  users_.clear();
  groups_.clear();
  hosts_.clear();
}

}  // namespace vpfs::control
