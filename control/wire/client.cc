#include "control/wire/client.h"

#include <chrono>
#include <exception>
#include <utility>

#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include "base/result.h"
#include "base/system_clock.h"
#include "control/wire/protocol.h"
#include "control/wire/requests.h"
#include "control/wire/rights.h"
#include "net/gather.h"

namespace vpfs::control {
namespace {

// At most so many ports are connected to or asked at the same time.
constexpr std::size_t kMostAtOnce = 256;
// While another process takes over.
constexpr int kTimesAsked = 10;
constexpr int kTimesLost = 3;
constexpr Duration kBetweenTimes = std::chrono::milliseconds(10);
constexpr Duration kSoon = std::chrono::milliseconds(500);

// Runs the loop until the task is done.
template <typename T>
T wait_for(asio::io_context& context, net::Task<T> task) {
  std::optional<T> result;
  std::exception_ptr thrown;
  auto done = [&result, &thrown](const std::exception_ptr& problem, T value) {
    thrown = problem;
    if (!problem) result.emplace(std::move(value));
  };
  asio::co_spawn(context, std::move(task), std::move(done));
  context.restart();
  while (!result && !thrown && context.run_one() > 0) {
  }
  if (thrown) std::rethrow_exception(thrown);
  return std::move(*result);
}

}  // namespace

PortClient::PortClient(std::unique_ptr<asio::io_context> context,
                       std::unique_ptr<ClientSession> session)
    : context_(std::move(context)), session_(std::move(session)) {}

PortClient::PortClient(PortClient&&) noexcept = default;

PortClient& PortClient::operator=(PortClient&& other) noexcept {
  if (this != &other) {
    close();
    context_ = std::move(other.context_);
    session_ = std::move(other.session_);
  }
  return *this;
}

PortClient::~PortClient() {
  close();
}

void PortClient::close() {
  session_.reset();
}

Reply<PortClient> PortClient::connect(const PortAddress& address, const ClientOptions& options) {
  auto context = std::make_unique<asio::io_context>(1);
  auto session = wait_for(*context, ClientSession::open(address, options));
  VPFS_TRY(session);
  return PortClient(std::move(context), std::move(*session));
}

Reply<Envelope> PortClient::ask(Envelope request, Duration patience) {
  return wait_for(*context_, session_->ask(std::move(request), patience));
}

Reply<std::uint64_t> PortClient::start(Envelope request, Duration patience) {
  return wait_for(*context_, session_->start(std::move(request), patience));
}

Reply<Envelope> PortClient::next(std::uint64_t number, Duration patience) {
  return wait_for(*context_, session_->next(number, patience));
}

LeaderClient::LeaderClient(std::vector<PortAddress> addresses, ClientOptions options)
    : context_(std::make_unique<asio::io_context>(1)),
      session_(std::make_unique<LeaderSession>(std::move(addresses), std::move(options))) {}

LeaderClient::~LeaderClient() {
  session_.reset();
}

Reply<Envelope> LeaderClient::ask(Envelope request, Duration patience) {
  return wait_for(*context_, session_->ask(std::move(request), patience));
}

SiteClient::SiteClient(std::vector<PortAddress> ports, ClientOptions options)
    : ports_(std::move(ports)),
      options_(std::move(options)),
      context_(std::make_unique<asio::io_context>(1)),
      sessions_(ports_.size()) {}

SiteClient::~SiteClient() {
  sessions_.clear();
}

const Hello* SiteClient::hello(std::size_t port) const {
  return sessions_[port] == nullptr ? nullptr : &sessions_[port]->hello();
}

net::Task<Reply<Envelope>> SiteClient::ask_once(std::size_t port, Envelope request,
                                                Duration patience) {
  if (sessions_[port] != nullptr && sessions_[port]->closed()) sessions_[port].reset();
  if (sessions_[port] == nullptr) {
    auto session = co_await ClientSession::open(ports_[port], options_);
    VPFS_CO_TRY(session);
    sessions_[port] = std::move(*session);
  }
  Reply<Envelope> answer = co_await sessions_[port]->ask(std::move(request), patience);
  co_return answer;
}

// While another process takes over, the one before refuses, or ends in the middle. The new one
// answers at the same address.
net::Task<std::optional<Reply<Envelope>>> SiteClient::ask_one(std::size_t port,
                                                              std::optional<Envelope> request,
                                                              Duration patience) {
  if (!request) co_return std::nullopt;
  for (int refused = 0, lost = 0;;) {
    Envelope again = *request;
    const TimePoint began = SystemClock().now();
    Reply<Envelope> answer = co_await ask_once(port, std::move(again), patience);
    if (answer) co_return answer;
    const bool is_soon = SystemClock().now() - began < kSoon;
    const bool changes = needed_right(*request) == Rights::change;
    if (answer.error().reached && answer.error().error.place() == kTakenOver) {
      ++refused;
    } else if (!answer.error().reached && !answer.error().answers && is_soon && !changes) {
      ++lost;
    } else {
      co_return answer;
    }
    if (refused == kTimesAsked || lost == kTimesLost) co_return answer;
    sessions_[port].reset();
    asio::steady_timer pause(*context_, kBetweenTimes);
    std::error_code ignored;
    auto token = asio::redirect_error(asio::use_awaitable, ignored);
    co_await pause.async_wait(token);
  }
}

std::vector<std::optional<Reply<Envelope>>> SiteClient::ask(
    const std::vector<std::optional<Envelope>>& requests, Duration patience) {
  auto one = [this, &requests, patience](std::size_t port) {
    return ask_one(port, requests[port], patience);
  };
  return wait_for(*context_, net::gather(ports_.size(), kMostAtOnce, one));
}

std::vector<Reply<Envelope>> SiteClient::ask(const Envelope& request, Duration patience) {
  const std::vector<std::optional<Envelope>> same(ports_.size(), request);
  std::vector<Reply<Envelope>> answers;
  for (auto& answer : ask(same, patience)) answers.push_back(std::move(*answer));
  return answers;
}

}  // namespace vpfs::control
