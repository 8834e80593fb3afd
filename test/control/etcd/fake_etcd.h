#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <httplib.h>

namespace vpfs::control {

// What an HTTP server says to POSTs, as a test tells it.
class FakeEtcd {
 public:
  struct Asked {
    std::string path;
    std::string body;
    std::string token;
  };
  using Answer = std::function<void(const Asked&, httplib::Response&)>;

  explicit FakeEtcd(Answer answer) : answer_(std::move(answer)) {
    server_.set_keep_alive_max_count(1'000);
    server_.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      const Asked asked = {.path = request.path,
                           .body = request.body,
                           .token = request.get_header_value("Authorization")};
      {
        const std::lock_guard lock(mutex_);
        asked_.push_back(asked);
      }
      answer_(asked, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~FakeEtcd() {
    server_.stop();
    thread_.join();
  }
  FakeEtcd(const FakeEtcd&) = delete;
  FakeEtcd& operator=(const FakeEtcd&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::vector<Asked> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  const Answer answer_;
  httplib::Server server_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;
  std::thread thread_;
};

}  // namespace vpfs::control
