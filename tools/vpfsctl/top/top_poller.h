#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/wire/leader/leader_session.h"
#include "net/async.h"
#include "tools/vpfsctl/site/answer.h"
#include "tools/vpfsctl/site/asked_proxies.h"
#include "tools/vpfsctl/site/targets.h"

namespace vpfs::ctl {

// Asks proxies the same again and again on a thread of its own, each for itself: one that is silent
// delays no other. A lost connection is made anew.
class TopPoller {
 public:
  TopPoller(std::vector<Target> targets, SiteOptions options, control::Envelope request,
            Duration period);
  // A coordinator: the one of its processes that leads.
  TopPoller(const std::vector<control::PortAddress>& coordinators, SiteOptions options,
            control::Envelope request, Duration period);
  ~TopPoller();
  TopPoller(const TopPoller&) = delete;
  TopPoller& operator=(const TopPoller&) = delete;

  // What came since the last call, oldest first, with the proxy's index.
  [[nodiscard]] std::vector<std::pair<std::size_t, ProxyAnswer>> take();

 private:
  void start();
  [[nodiscard]] net::Task<> poll(std::size_t proxy);
  [[nodiscard]] net::Task<ProxyAnswer> ask_once(std::size_t proxy,
                                                std::unique_ptr<control::ClientSession>& session);
  [[nodiscard]] net::Task<ProxyAnswer> ask_leader();

  const std::vector<Target> targets_;
  std::unique_ptr<control::LeaderSession> leader_;  // null: the targets are asked
  const SiteOptions options_;
  const control::Envelope request_;
  const Duration period_;
  asio::io_context context_{1};
  std::mutex mutex_;  // of answers_
  std::vector<std::pair<std::size_t, ProxyAnswer>> answers_;
  std::thread thread_;
};

}  // namespace vpfs::ctl
