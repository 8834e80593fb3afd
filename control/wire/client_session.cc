#include "control/wire/client_session.h"

#include <utility>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <fmt/format.h>

#include "base/result.h"
#include "base/units.h"
#include "control/wire/client_connect.h"
#include "control/wire/port_limits.h"

namespace vpfs::control {
namespace {

// Closes a channel if it is not gone by its time.
class Deadline {
 public:
  Deadline(const asio::any_io_executor& executor, const std::shared_ptr<net::Channel>& channel,
           Duration patience)
      : timer_(executor, patience), state_(std::make_shared<State>(State::waiting)) {
    timer_.async_wait([state = state_, weak = std::weak_ptr(channel)](std::error_code stopped) {
      const auto open = weak.lock();
      if (stopped || open == nullptr || *state != State::waiting) return;
      *state = State::passed;
      open->close();
    });
  }
  ~Deadline() {
    if (*state_ == State::waiting) *state_ = State::over;
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  [[nodiscard]] bool passed() const { return *state_ == State::passed; }

 private:
  enum class State : std::uint8_t { waiting, passed, over };
  asio::steady_timer timer_;
  std::shared_ptr<State> state_;  // shared with the timer's handler
};

std::string in_time(Duration patience) {
  return fmt::format(
      "no answer within {}",
      vpfs::to_string(Duration(std::chrono::floor<std::chrono::milliseconds>(patience))));
}

void set_unanswered(Failure& failure, Duration patience) {
  failure.answers = true;
  failure.error.set_text(in_time(patience));
}

}  // namespace

ClientSession::ClientSession(PortAddress address, std::shared_ptr<net::Channel> channel)
    : address_(std::move(address)), channel_(std::move(channel)), reader_(kMostAnswer) {}

ClientSession::~ClientSession() {
  close();
}

void ClientSession::close() {
  if (!std::exchange(closed_, true)) channel_->close();
}

Failure ClientSession::lost(const std::string& why) {
  close();
  return {.reached = false, .error = make_error(Error::UNAVAILABLE, to_string(address_), why)};
}

net::Task<Reply<std::unique_ptr<ClientSession>>> ClientSession::open(
    PortAddress address, ClientOptions options, std::vector<net::Endpoint> endpoints) {
  const std::string place = to_string(address);
  auto channel = co_await connect_port(address, options, std::move(endpoints));
  if (!channel) {
    Failure failure = {.reached = false,
                       .error = make_error(Error::UNAVAILABLE, place, channel.error())};
    co_return std::unexpected(std::move(failure));
  }
  const Duration patience = options.connect_within;
  std::unique_ptr<ClientSession> session(
      new ClientSession(std::move(address), std::move(*channel)));
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const Deadline deadline(executor, session->channel_, patience);
  Reply<void> greeted = co_await session->greet(std::move(options));
  if (!greeted) {
    if (deadline.passed()) greeted.error().error.set_text(in_time(patience));
    co_return std::unexpected(std::move(greeted.error()));
  }
  co_return std::move(session);
}

net::Task<Reply<void>> ClientSession::greet(ClientOptions options) {
  const Result<void> shaken = co_await channel_->handshake();
  if (!shaken) co_return std::unexpected(lost(shaken.error().message));
  Envelope hello;
  hello.set_id(++last_number_);
  hello.mutable_hello()->set_version(options.versions.newest);
  hello.mutable_hello()->set_least(options.versions.least);
  hello.mutable_hello()->set_role(options.role);
  hello.mutable_hello()->set_program(options.program);
  std::string frame;
  (void)append_frame(hello, kMostAnswer, frame);
  // A port that refuses connections says why before it reads.
  (void)co_await channel_->write(std::as_bytes(std::span(frame)));
  auto answer = co_await read_answer(last_number_);
  VPFS_CO_TRY(answer);
  if (!answer->has_hello()) {
    co_return std::unexpected(lost("is not a control port: it sent no Hello"));
  }
  hello_ = std::move(*answer->mutable_hello());
  if (!options.if_coordinator.empty() && hello_.role() == Hello::COORDINATOR) {
    co_return std::unexpected(lost(options.if_coordinator));
  }
  if (!options.if_stage.empty() && hello_.role() == Hello::STAGE) {
    co_return std::unexpected(lost(options.if_stage));
  }
  const Versions theirs = versions_of(hello_);
  if (!common_version(options.versions, theirs)) {
    co_return std::unexpected(lost(no_common_version(options.versions, theirs)));
  }
  co_return Reply<void>();
}

net::Task<Reply<Envelope>> ClientSession::ask(Envelope request, Duration patience) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const Deadline deadline(executor, channel_, patience);
  const auto number = co_await start(std::move(request), patience);
  VPFS_CO_TRY(number);
  Reply<Envelope> answer = co_await read_answer(*number);
  if (!answer && deadline.passed()) set_unanswered(answer.error(), patience);
  co_return answer;
}

net::Task<Reply<std::uint64_t>> ClientSession::start(Envelope request, Duration patience) {
  if (closed_) co_return std::unexpected(lost("the connection is closed"));
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const Deadline deadline(executor, channel_, patience);
  const std::uint64_t number = ++last_number_;
  request.set_id(number);
  std::string frame;
  constexpr std::size_t kMost = PortLimits().frame_of_writers;
  if (!append_frame(request, kMost, frame)) {
    // As the port would refuse it, but with the reason.
    const std::string why = fmt::format("the request has {} bytes, and a control port takes {}",
                                        request.ByteSizeLong(), kMost);
    Failure failure = {.reached = true, .error = make_error(Error::INVALID, "", why)};
    co_return std::unexpected(std::move(failure));
  }
  const std::error_code error = co_await channel_->write(std::as_bytes(std::span(frame)));
  if (!error) co_return number;
  if (deadline.passed()) co_return std::unexpected(lost("takes no request"));
  // It may have said why it closes the connection.
  auto last = co_await read_answer(number);
  if (!last && last.error().reached) co_return std::unexpected(std::move(last.error()));
  co_return std::unexpected(lost(channel_->explain(error)));
}

net::Task<Reply<Envelope>> ClientSession::next(std::uint64_t number, Duration patience) {
  if (closed_) co_return std::unexpected(lost("the connection is closed"));
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const Deadline deadline(executor, channel_, patience);
  Reply<Envelope> answer = co_await read_answer(number);
  if (!answer && deadline.passed()) set_unanswered(answer.error(), patience);
  co_return answer;
}

net::Task<Reply<Envelope>> ClientSession::read_answer(std::uint64_t number) {
  for (;;) {
    Reply<Envelope> message = co_await read_one();
    if (!message) co_return message;
    // An error without a number is about the connection.
    const bool refused = message->has_error() && message->id() == 0;
    if (!refused && (!message->answer() || message->id() != number)) continue;
    if (!message->has_error()) co_return message;
    if (refused) close();
    Failure failure = {.reached = true, .error = std::move(*message->mutable_error())};
    co_return std::unexpected(std::move(failure));
  }
}

net::Task<Reply<Envelope>> ClientSession::read_one() {
  for (;;) {
    const auto frame = reader_.next();
    if (!frame) {
      co_return std::unexpected(lost("is not a control port: " + to_string(frame.error())));
    }
    if (const auto& whole = *frame) {
      Envelope message;
      if (!decode(*whole, message)) {
        co_return std::unexpected(lost("is not a control port: it sent an invalid message"));
      }
      co_return message;
    }
    const std::span<std::byte> room = reader_.room();
    const net::Transfer transfer = co_await channel_->read_some(room);
    if (transfer.error == asio::error::eof) {
      co_return std::unexpected(lost("closed the connection without an answer"));
    }
    if (transfer.error) co_return std::unexpected(lost(channel_->explain(transfer.error)));
    reader_.received(transfer.size);
  }
}

}  // namespace vpfs::control
