#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>

#include "base/system_clock.h"
#include "dataserver/orangefs/server.h"
#include "net/endpoint.h"

namespace vpfs::test {

// A file system of several servers on one thread of the test. The destructor stops them.
class RunningFileSystem {
 public:
  static constexpr orangefs::FsId kId = 1234;

  // `adjust` may change the configuration before the servers open.
  explicit RunningFileSystem(
      std::uint32_t servers = 1,
      const std::function<void(dataserver::ServerConfig&)>& adjust = nullptr) {
    dataserver::ServerConfig config;
    config.id = kId;
    std::vector<net::Listener> listeners;
    for (std::uint32_t i = 0; i < servers; ++i) {
      const net::Endpoint loopback(asio::ip::address_v4::loopback(), 0);
      listeners.push_back(net::Listener::open(context_, loopback).value());
      const std::string address = net::to_string(listeners.back().local_endpoint());
      config.servers.push_back(
          {.alias = "s" + std::to_string(i), .addresses = {"tcp://" + address}});
      ports_.push_back(listeners.back().local_endpoint().port());
    }
    if (adjust) adjust(config);
    for (std::uint32_t i = 0; i < servers; ++i) {
      servers_.push_back(dataserver::Server::open(context_, config, i, std::move(listeners[i]),
                                                  clock_, time_of_day)
                             .value());
      servers_.back()->start();
    }
    thread_ = std::thread([this] { context_.run(); });
  }
  ~RunningFileSystem() {
    asio::post(context_, [this] {
      for (const auto& server : servers_) server->stop();
    });
    thread_.join();
  }
  RunningFileSystem(const RunningFileSystem&) = delete;
  RunningFileSystem& operator=(const RunningFileSystem&) = delete;

  [[nodiscard]] std::uint16_t port(std::uint32_t server = 0) const { return ports_[server]; }

 private:
  static std::chrono::milliseconds time_of_day() {
    return std::chrono::seconds(std::time(nullptr));
  }

  asio::io_context context_;
  SystemClock clock_;
  std::vector<std::uint16_t> ports_;
  std::vector<std::unique_ptr<dataserver::Server>> servers_;
  std::thread thread_;
};

}  // namespace vpfs::test
