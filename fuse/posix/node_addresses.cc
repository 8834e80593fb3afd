#include "fuse/posix/node_addresses.h"

#include <algorithm>
#include <array>
#include <memory>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vpfs::fuse {
namespace {

// "": no IP address, or one that other nodes have too.
std::string text_of(const sockaddr* address) {
  if (address == nullptr) return "";
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&six)) bytes = &six;
  }
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (bytes == nullptr ||
      ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr)
    return "";
  return text.data();
}

}  // namespace

Node this_node() {
  Node node;
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0') {
    const std::string whole = name.data();
    node.names = {whole, whole.substr(0, whole.find('.'))};
  }
  // 127.0.1.1 is what Debian's /etc/hosts gives the host's own name.
  std::vector<std::string> loopback = {"127.0.0.1", "127.0.1.1", "::1"};
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) == 0) {
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
    for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
      const std::string text = text_of(each->ifa_addr);
      auto& into = (each->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : node.addresses;
      if (!text.empty() && std::ranges::find(into, text) == into.end()) into.push_back(text);
    }
  }
  node.addresses.insert(node.addresses.end(), loopback.begin(), loopback.end());
  return node;
}

}  // namespace vpfs::fuse
