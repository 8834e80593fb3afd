#include "control/wire/leader/leader_session.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include <asio/this_coro.hpp>
#include <fmt/format.h>

#include "base/joined.h"
#include "base/one_line.h"
#include "base/result.h"
#include "control/wire/requests.h"
#include "net/signal.h"

namespace vpfs::control {
namespace {

// A standby that does not say where the leader is.
constexpr const char* kIsStandby = "this coordinator is a standby";

// Where the leader is, in the words of a standby: it answers any request but Status with that.
net::Task<std::string> ask_standby(ClientSession& standby, Duration patience) {
  Envelope request;
  request.mutable_stats();
  const Reply<Envelope> answer = co_await standby.ask(std::move(request), patience);
  const bool says_it = !answer && answer.error().reached && is_for_leader(answer.error().error);
  co_return says_it ? one_short_line(answer.error().error.text()) : kIsStandby;
}

}  // namespace

// What the coroutines of one search have in common. Those that are late outlive it.
struct LeaderSession::Search {
  Search(const asio::any_io_executor& executor, std::size_t count, bool takes_standby)
      : changed(executor), failures(count), running(count), takes_standby(takes_standby) {}

  void fail(std::size_t which, const PortAddress& address, std::string why) {
    failures[which] = {.reached = false,
                       .error = make_error(Error::UNAVAILABLE, to_string(address), std::move(why))};
  }

  net::Signal changed;
  std::vector<std::optional<Failure>> failures;  // of each address
  std::unique_ptr<ClientSession> leader;
  std::size_t running;
  const bool takes_standby;
  bool is_over = false;
};

LeaderSession::LeaderSession(std::vector<PortAddress> addresses, ClientOptions options)
    : addresses_(std::move(addresses)), options_(std::move(options)) {
  if (addresses_.size() == 1) return;
  options_.connect_within = std::min(options_.connect_within, options_.connect_each_within);
}

const Hello* LeaderSession::hello() const {
  return session_ == nullptr ? nullptr : &session_->hello();
}

net::Task<> LeaderSession::try_one(std::shared_ptr<Search> search, std::size_t which,
                                   PortAddress address, ClientOptions options) {
  const Duration patience = options.connect_within;
  auto session = co_await ClientSession::open(address, std::move(options));
  if (search->is_over) co_return;
  const bool is_alone = search->failures.size() == 1;
  if (!session) {
    search->failures[which] = std::move(session.error());
  } else if (!search->takes_standby && is_standby((*session)->hello())) {
    std::string text = co_await ask_standby(**session, patience);
    search->fail(which, address, std::move(text));
  } else if (!is_alone && (*session)->hello().role() != Hello::COORDINATOR) {
    const std::string name = one_short_line((*session)->hello().name());
    search->fail(which, address, fmt::format("is not a coordinator: it calls itself \"{}\"", name));
  } else if (search->leader == nullptr) {
    search->leader = std::move(*session);
  }
}

net::Task<Reply<void>> LeaderSession::connect(bool takes_standby) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto search = std::make_shared<Search>(executor, addresses_.size(), takes_standby);
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    const auto ended = [search, i, address = addresses_[i]](const std::exception_ptr& problem) {
      // An exception of a library, such as for want of memory.
      if (problem) search->fail(i, address, "an exception ended the attempt");
      --search->running;
      search->changed.notify_all();
    };
    asio::co_spawn(executor, try_one(search, i, addresses_[i], options_), ended);
  }
  // One that does not answer at all does not delay the answer of another one.
  while (search->leader == nullptr && search->running > 0) co_await search->changed.wait();
  search->is_over = true;
  session_ = std::move(search->leader);
  if (session_ == nullptr) co_return std::unexpected(not_led(*search));
  co_return Reply<void>();
}

Failure LeaderSession::not_led(const Search& search) const {
  if (addresses_.size() == 1) return *search.failures.front();
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    parts.push_back(
        fmt::format("{}: {}", to_string(addresses_[i]), search.failures[i]->error.text()));
  }
  Failure failure = *search.failures.front();
  // Only what all of them refuse is a refusal.
  failure.reached =
      std::ranges::all_of(search.failures, [](const auto& each) { return each->reached; });
  if (!failure.reached) {
    failure.error.set_code(Error::UNAVAILABLE);
    failure.error.set_place(to_string(addresses_));
  }
  failure.error.set_text("none of them leads: " + joined(parts, "; "));
  return failure;
}

bool LeaderSession::may_ask_again(const Failure& failure, const Envelope& request) const {
  if (failure.reached) return is_for_leader(failure.error);
  const bool is_lost = session_->closed() && !failure.answers;
  return addresses_.size() > 1 && is_lost && needed_right(request) != Rights::change;
}

net::Task<Reply<Envelope>> LeaderSession::ask(Envelope request, Duration patience) {
  for (bool is_again = false;; is_again = true) {
    if (session_ != nullptr && session_->closed()) session_.reset();
    if (session_ == nullptr) {
      const bool takes_standby = addresses_.size() == 1 && request.has_status();
      Reply<void> found = co_await connect(takes_standby);
      VPFS_CO_TRY(found);
    }
    Reply<Envelope> answer = co_await session_->ask(request, patience);
    if (answer) co_return answer;
    if (is_again || !may_ask_again(answer.error(), request)) {
      if (answer.error().reached && is_for_leader(answer.error().error)) {
        answer.error().reached = false;
        session_.reset();
      }
      co_return answer;
    }
    session_.reset();
  }
}

}  // namespace vpfs::control
