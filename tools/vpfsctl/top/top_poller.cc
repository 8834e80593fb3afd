#include "tools/vpfsctl/top/top_poller.h"

#include <asio/steady_timer.hpp>

namespace vpfs::ctl {

TopPoller::TopPoller(std::vector<Target> targets, SiteOptions options, control::Envelope request,
                     Duration period)
    : targets_(std::move(targets)),
      options_(std::move(options)),
      request_(std::move(request)),
      period_(period) {
  start();
}

TopPoller::TopPoller(const std::vector<control::PortAddress>& coordinators, SiteOptions options,
                     control::Envelope request, Duration period)
    : targets_({Target{.name = control::to_string(coordinators), .endpoint = {}}}),
      leader_(std::make_unique<control::LeaderSession>(coordinators, options.client)),
      options_(std::move(options)),
      request_(std::move(request)),
      period_(period) {
  start();
}

void TopPoller::start() {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    asio::co_spawn(context_, poll(i), asio::detached);
  }
  thread_ = std::thread([this] { context_.run(); });
}

TopPoller::~TopPoller() {
  context_.stop();
  thread_.join();
  leader_.reset();  // before its context
}

std::vector<std::pair<std::size_t, ProxyAnswer>> TopPoller::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

net::Task<> TopPoller::poll(std::size_t proxy) {
  std::unique_ptr<control::ClientSession> session;
  asio::steady_timer timer(context_);
  for (;;) {
    timer.expires_after(period_);
    ProxyAnswer answer;
    if (leader_ == nullptr) {
      answer = co_await ask_once(proxy, session);
    } else {
      answer = co_await ask_leader();
    }
    {
      const std::lock_guard lock(mutex_);
      answers_.emplace_back(proxy, std::move(answer));
    }
    co_await timer.async_wait(net::kUseTask);  // over at once if the answer took longer
  }
}

net::Task<ProxyAnswer> TopPoller::ask_once(std::size_t proxy,
                                           std::unique_ptr<control::ClientSession>& session) {
  const Target& target = targets_[proxy];
  if (session != nullptr && session->closed()) session.reset();
  if (session == nullptr) {
    control::PortAddress endpoint = target.endpoint;
    control::ClientOptions options = options_.client;
    auto opened = co_await control::ClientSession::open(std::move(endpoint), std::move(options));
    if (!opened) {
      control::Reply<control::Envelope> failed = std::unexpected(std::move(opened.error()));
      co_return to_answer(target.name, std::move(failed));
    }
    session = std::move(*opened);
  }
  const std::string& its_own = session->hello().name();
  std::string name = target.is_named || its_own.empty() ? target.name : its_own;
  control::Reply<control::Envelope> reply = co_await session->ask(request_, options_.timeout);
  co_return to_answer(std::move(name), std::move(reply));
}

net::Task<ProxyAnswer> TopPoller::ask_leader() {
  control::Reply<control::Envelope> reply = co_await leader_->ask(request_, options_.timeout);
  const control::Hello* const hello = leader_->hello();
  const bool is_named = hello != nullptr && !hello->name().empty();
  co_return to_answer(is_named ? hello->name() : targets_.front().name, std::move(reply));
}

}  // namespace vpfs::ctl
