#include "test/support/embedded_servers.h"

#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/support/places.h"

namespace vpfs::test {
namespace {

bool answers(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int result = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::close(socket);
  return result == 0;
}

}  // namespace

EmbeddedServers::EmbeddedServers(int count, const std::string& extra,
                                 const std::vector<std::uint16_t>& proxies, Engine engine) {
  const std::string storage =
      engine == Engine::memory
          ? "engine: memory"
          : fmt::format("engine: directory, path: {}", (directory_.path() / "store").string());
  std::string text = fmt::format(
      "file_system: {{name: vpfs, id: 1234}}\n"
      "storage: {{{}, capacity: 1 GiB}}\n"
      "log_level: warn\nservers:\n",
      storage);
  for (int i = 0; i < count; ++i) {
    ports_.emplace_back();
    std::string addresses = fmt::format("\"tcp://{}\"", ports_.back().address());
    if (!proxies.empty()) {
      addresses += fmt::format(", \"tcp-px://127.0.0.1:{}\"", proxies[static_cast<std::size_t>(i)]);
    }
    text += fmt::format("  - {{alias: s{}, addresses: [{}]}}\n", i, addresses);
  }
  config_ = directory_.write("server.yaml", text + extra);
  for (std::size_t i = 0; i < ports_.size(); ++i) servers_.push_back(start(i));
}

Process EmbeddedServers::start(std::size_t index) const {
  Process server(
      {program("vpfs-server"), "--config", config_, "--server", fmt::format("s{}", index)});
  for (int i = 0; i < 5000 && server.running() && !answers(ports_[index].number()); ++i) {
    std::this_thread::sleep_for(2ms);
  }
  return server;
}

void EmbeddedServers::restart(std::size_t index) {
  servers_[index] = start(index);
}

std::string EmbeddedServers::address() const {
  return fmt::format("tcp://{}/vpfs", ports_.front().address());
}

std::string EmbeddedServers::errors() const {
  std::string text;
  for (const Process& server : servers_) text += server.errors();
  return text;
}

}  // namespace vpfs::test
