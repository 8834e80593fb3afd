#include "control/coordinator/members/members_port.h"

#include "base/result.h"
#include "control/coordinator/office/addresses.h"
#include "control/wire/leader/address_list.h"
#include "control/wire/port_address.h"
#include "net/endpoint.h"

namespace vpfs::coordinator {
namespace {

constexpr const char* kSuffix = ".members";

// Where the control port is, if the configuration says so, members are too.
std::string host_of_control(const Config& config, const std::string& listens_at) {
  const std::vector<control::PortAddress> told = control::parse_addresses(config.store->addresses)
                                                     .value_or(std::vector<control::PortAddress>());
  const bool is_told = !told.empty() && !told.front().is_unix();
  return is_told ? told.front().host : reachable_host(listens_at);
}

}  // namespace

Result<MembersPort> MembersPort::reserve(const Config& config) {
  MembersPort port;
  if (config.control.tcp.empty()) {
    port.address_ = absolute_address(config.control.socket + kSuffix);
    return port;
  }
  auto endpoint = net::resolve_endpoint(config.control.tcp);
  if (!endpoint) return fail("control.tcp: " + endpoint.error().message);
  endpoint->port(config.members->port);
  auto reserved = PortReservation::make(*endpoint);
  if (!reserved) return fail("members: " + reserved.error().message, reserved.error().code);
  // Its certificate has the name that it is dialled by.
  auto address = control::parse_port_address("tcp:" + config.control.tcp);
  if (!address) return fail("control.tcp: " + address.error().message);
  address->host = host_of_control(config, address->host);
  address->port = reserved->endpoint().port();
  port.address_ = control::to_string(*address);
  port.reserved_ = std::move(*reserved);
  return port;
}

Config MembersPort::leader_config(const Config& config) const {
  Config leader = config;
  leader.dial.clear();
  leader.listen = config.control;
  leader.listen.coordinators.clear();
  leader.listen.audit.clear();
  leader.listen_key = "control";
  if (reserved_) {
    leader.listen.socket.clear();
    leader.listen.tcp = net::to_string(reserved_->endpoint());
    leader.listen_is_reserved = true;
  } else {
    leader.listen.socket += kSuffix;
  }
  return leader;
}

Config member_config(const Config& config) {
  Config member = config;
  member.members.reset();
  member.store.reset();
  member.jobs.clear();
  member.capacity = {};
  member.control = {};
  member.http = {};
  member.parent.emplace();
  member.parent->tls = {.certificate = config.control.certificate,
                        .key = config.control.key,
                        .ca = config.control.ca};
  // It has answered before the leader's deadline.
  member.deadline = config.deadline / 2;
  return member;
}

std::vector<std::string> stage_addresses_of(const Config& config) {
  std::vector<std::string> addresses;
  if (!config.listen.tcp.empty()) {
    if (auto address = control::parse_port_address("tcp:" + config.listen.tcp)) {
      address->host = reachable_host(address->host);
      addresses.push_back(control::to_string(*address));
    }
  }
  if (!config.listen.socket.empty()) addresses.push_back(absolute_address(config.listen.socket));
  return addresses;
}

}  // namespace vpfs::coordinator
