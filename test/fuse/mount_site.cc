#include "test/fuse/mount_site.h"

#include <utility>

#include <fmt/format.h>

#include "test/support/places.h"

namespace vpfs::test {

std::string MountSite::why_none(Backend backend) {
  if (std::string why = why_no_mounts(); !why.empty()) return why;
  if (backend == Backend::real && !OrangefsServers::find()) {
    return "there is no pvfs2-server (VPFS_ORANGEFS_PREFIX)";
  }
  return "";
}

MountSite::MountSite(Backend backend, Faults faults) {
  using Engine = EmbeddedServers::Engine;
  const bool proxied = faults == Faults::of_proxy;
  switch (backend) {
    case Backend::directory:
      std::filesystem::create_directories(directory_.path() / "below");
      return;
    case Backend::embedded:
      if (!proxied) {
        embedded_.emplace(3, "", std::vector<std::uint16_t>(),
                          faults == Faults::none ? Engine::memory : Engine::directory);
        address_ = embedded_->address();
        return;
      }
      ports_.emplace_back();
      add_proxy(ports_.front().number());
      server_command_ = {
          program("vpfs-server"), "--config",
          directory_.write(
              "server.yaml",
              fmt::format(
                  "file_system: {{name: vpfs, id: 1234}}\n"
                  "servers: [{{alias: s0, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}]\n"
                  "storage: {{engine: directory, path: {}/store}}\n",
                  ports_.front().address(), proxies_.front()->port(), directory_.path().string()))};
      start_server();
      address_ = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxies_.front()->port());
      return;
    case Backend::real:
      real_.emplace(*OrangefsServers::find(),
                    proxied ? OrangefsServers::ProxyFor([this](std::uint16_t server) {
                      add_proxy(server);
                      return proxies_.back()->port();
                    })
                            : OrangefsServers::ProxyFor());
      EXPECT_TRUE(real_->wait_until_ready()) << real_->errors();
      address_ = proxied ? real_->proxied_address() : real_->address();
  }
}

void MountSite::add_proxy(std::uint16_t server) {
  proxies_.push_back(std::make_unique<ProxyProcess>(ProxySettings{.upstream = server}));
}

MountProcess::Settings MountSite::settings(std::vector<std::string> options) const {
  MountProcess::Settings wanted;
  wanted.options = std::move(options);
  if (address_.empty()) {
    wanted.below = directory_.path() / "below";
    std::erase(wanted.options, "locks=local");
  } else {
    wanted.address = address_;
  }
  return wanted;
}

std::string MountSite::source() const {
  return address_.empty() ? "posix:" + (directory_.path() / "below").string() : address_;
}

void MountSite::kill_server() {
  if (real_) return real_->kill(0);
  (void)(proxied_ ? *proxied_ : embedded_->server(0)).kill();
}

void MountSite::start_server() {
  if (real_) return real_->start(0);
  if (embedded_) return embedded_->restart(0);
  proxied_.emplace(server_command_);
  EXPECT_TRUE(proxied_->wait_for_line("ready on")) << proxied_->errors();
}

void MountSite::kill_proxy() {
  proxies_.front()->kill();
}

void MountSite::start_proxy() {
  proxies_.front()->start();
}

}  // namespace vpfs::test
