#include "control/coordinator/office/addresses.h"

#include <array>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "control/wire/port_address.h"

namespace vpfs::coordinator {
namespace {

bool is_any(const std::string& host) {
  return host.empty() || host == "0.0.0.0" || host == "::" || host == "*";
}

std::string own_host() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

std::vector<std::string> addresses_of(const Config& config) {
  if (config.store && !config.store->addresses.empty()) return config.store->addresses;
  if (!config.control.tcp.empty()) {
    auto address = control::parse_port_address("tcp:" + config.control.tcp);
    if (address) address->host = reachable_host(address->host);
    return {address ? control::to_string(*address) : config.control.tcp};
  }
  if (config.control.socket.empty()) return {};
  return {absolute_address(config.control.socket)};
}

std::string reachable_host(const std::string& host) {
  return is_any(host) ? own_host() : host;
}

std::string absolute_address(const std::string& socket) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(socket, error);
  return "unix:" + (error ? socket : path.string());
}

}  // namespace vpfs::coordinator
