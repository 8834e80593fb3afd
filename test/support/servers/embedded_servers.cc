#include "test/support/servers/embedded_servers.h"

#include <thread>

#include <fmt/format.h>

#include "test/support/places.h"

namespace vpfs::test {
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
  for (int i = 0; i < 5000 && server.running() && !ports_[index].answers(); ++i) {
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
