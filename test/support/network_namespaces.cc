#include "test/support/network_namespaces.h"

#include <fmt/format.h>
#include <unistd.h>

namespace vpfs::test {
namespace {

bool ip(Command arguments) {
  arguments.insert(arguments.begin(), "ip");
  return run(arguments).ok();
}

bool set_up(const std::string& host, const std::string& device, const std::string& address) {
  return ip({"-n", host, "addr", "add", address, "dev", device}) &&
         ip({"-n", host, "link", "set", device, "up"}) &&
         ip({"-n", host, "link", "set", "lo", "up"});
}

}  // namespace

Process::Exit run(const Command& command, std::string* output) {
  Process process(command);
  const auto exit = process.wait(30s);
  if (output != nullptr) *output = process.output() + process.errors();
  return exit.value_or(Process::Exit{});
}

TwoHosts::TwoHosts()
    : servers_(fmt::format("vpfs-s-{}", ::getpid())),
      clients_(fmt::format("vpfs-c-{}", ::getpid())) {
  if (::geteuid() != 0) {
    problem_ = "only root may make network namespaces";
  } else if (!make()) {
    problem_ = "this system does not allow network namespaces";
  }
}

TwoHosts::~TwoHosts() {
  if (::geteuid() != 0) return;
  (void)ip({"netns", "delete", servers_});
  (void)ip({"netns", "delete", clients_});
}

bool TwoHosts::make() {
  return ip({"netns", "add", servers_}) && ip({"netns", "add", clients_}) &&
         ip({"link", "add", "vpfs-s", "netns", servers_, "type", "veth", "peer", "name", "vpfs-c",
             "netns", clients_}) &&
         set_up(servers_, "vpfs-s", "10.77.0.1/24") && set_up(clients_, "vpfs-c", "10.77.0.2/24");
}

Command TwoHosts::at(const std::string& host, const Command& command) {
  Command whole = {"ip", "netns", "exec", host};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

}  // namespace vpfs::test
