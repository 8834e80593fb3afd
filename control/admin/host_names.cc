#include "control/admin/host_names.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "control/wire/accounts.h"

namespace vpfs::control {
namespace {

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
  return answer(users_, name, user_id);
}

std::optional<std::uint32_t> HostNames::group(const std::string& name) const {
  return answer(groups_, name, group_id);
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
