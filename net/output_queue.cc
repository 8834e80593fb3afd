#include "net/output_queue.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <utility>

#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/check.h"
#include "net/signal.h"

namespace vpfs::net {

struct OutputQueue::State : std::enable_shared_from_this<OutputQueue::State> {
  enum class Outcome { progress, would_block, failed };

  explicit State(Socket& stream) : socket(stream), drained(stream.get_executor()) {}

  void schedule_flush();
  void flush();
  Outcome write_some();
  Outcome send_memory(bool more_follows);
  Outcome send_file(const FilePart& part);
  void written(std::size_t size);
  void wake_waiters();
  void shut();

  Socket& socket;  // not touched once closed
  std::deque<Message> messages;
  std::size_t front_done = 0;  // bytes of the front message that are written
  std::uint64_t pending = 0;
  Signal drained;                              // to the limit of a waiter, or closed
  std::optional<std::uint64_t> highest_limit;  // of the waiters
  bool flush_scheduled = false;
  bool closed = false;
};

namespace {

constexpr std::size_t kMostParts = 64;

std::size_t memory_size(const OutputQueue::Message& message) {
  return message.head.size() + message.payload.size();
}
std::size_t size_of(const OutputQueue::Message& message) {
  return memory_size(message) + message.file.size;
}

struct PartList {
  std::array<iovec, kMostParts> parts = {};
  std::size_t count = 0;

  [[nodiscard]] bool full() const { return count + 2 > kMostParts; }
  void add(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    parts[count++] = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  }
  // The memory of `message` past its first `done` bytes.
  void add(const OutputQueue::Message& message, std::size_t done) {
    const std::size_t in_head = std::min(done, message.head.size());
    add(std::span(message.head).subspan(in_head));
    add(message.payload.subspan(std::min(done - in_head, message.payload.size())));
  }
};

}  // namespace

void OutputQueue::State::schedule_flush() {
  if (flush_scheduled || closed) return;
  flush_scheduled = true;
  asio::post(socket.get_executor(), [self = shared_from_this()] {
    self->flush_scheduled = false;
    self->flush();
  });
}

void OutputQueue::State::flush() {
  while (!closed && !messages.empty()) {
    const Outcome outcome = write_some();
    if (outcome == Outcome::failed) return shut();
    if (outcome == Outcome::would_block) {
      flush_scheduled = true;
      socket.async_wait(Socket::wait_write, [self = shared_from_this()](std::error_code error) {
        self->flush_scheduled = false;
        if (error) return self->shut();
        self->flush();
      });
      break;
    }
  }
  wake_waiters();
}

OutputQueue::State::Outcome OutputQueue::State::write_some() {
  const Message& front = messages.front();
  if (front_done >= memory_size(front)) return send_file(front.file);
  return send_memory(false);
}

OutputQueue::State::Outcome OutputQueue::State::send_memory(bool more_follows) {
  PartList list;
  std::size_t done = front_done;
  for (const Message& message : messages) {
    if (list.full()) break;
    list.add(message, done);
    done = 0;
    if (message.file.size > 0) {
      more_follows = true;
      break;
    }
  }
  msghdr header = {};
  header.msg_iov = list.parts.data();
  header.msg_iovlen = list.count;
  const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more_follows ? MSG_MORE : 0);
  const ssize_t sent = ::sendmsg(socket.native_handle(), &header, flags);
  if (sent < 0) {
    if (errno == EINTR) return Outcome::progress;
    return errno == EAGAIN ? Outcome::would_block : Outcome::failed;
  }
  written(static_cast<std::size_t>(sent));
  return Outcome::progress;
}

OutputQueue::State::Outcome OutputQueue::State::send_file(const FilePart& part) {
  const std::size_t done = front_done - memory_size(messages.front());
  off_t offset = part.offset + static_cast<off_t>(done);
  const ssize_t sent =
      ::sendfile(socket.native_handle(), part.descriptor, &offset, part.size - done);
  if (sent < 0) {
    if (errno == EINTR) return Outcome::progress;
    return errno == EAGAIN ? Outcome::would_block : Outcome::failed;
  }
  if (sent == 0) return Outcome::failed;  // the file is shorter than promised
  written(static_cast<std::size_t>(sent));
  return Outcome::progress;
}

void OutputQueue::State::written(std::size_t size) {
  pending -= size;
  front_done += size;
  while (!messages.empty() && front_done >= size_of(messages.front())) {
    front_done -= size_of(messages.front());
    messages.pop_front();
  }
}

void OutputQueue::State::wake_waiters() {
  if (!highest_limit || (!closed && pending > *highest_limit)) return;
  highest_limit.reset();
  drained.notify_all();
}

void OutputQueue::State::shut() {
  if (closed) return;
  closed = true;
  messages.clear();
  front_done = 0;
  pending = 0;
  wake_waiters();
}

OutputQueue::OutputQueue(Socket& socket) : state_(std::make_shared<State>(socket)) {}
// asio's cancel() throws by its signature only.
// NOLINTNEXTLINE(bugprone-exception-escape)
OutputQueue::~OutputQueue() {
  state_->shut();
}

void OutputQueue::send(Message message) {
  if (state_->closed || size_of(message) == 0) return;
  state_->pending += size_of(message);
  state_->messages.push_back(std::move(message));
  state_->schedule_flush();
}

void OutputQueue::send(std::vector<std::byte> bytes) {
  Message message;
  message.head = std::move(bytes);
  send(std::move(message));
}

std::uint64_t OutputQueue::pending() const {
  return state_->pending;
}

Task<bool> OutputQueue::wait_until_pending_at_most(std::uint64_t limit) {
  const std::shared_ptr<State> state = state_;  // outlives the wait even if the queue does not
  while (!state->closed && state->pending > limit) {
    state->highest_limit = std::max(state->highest_limit.value_or(limit), limit);
    co_await state->drained.wait();
    const asio::cancellation_state cancelled = co_await asio::this_coro::cancellation_state;
    if (cancelled.cancelled() != asio::cancellation_type::none) co_return false;
  }
  co_return !state->closed;
}

void OutputQueue::close() {
  state_->shut();
}
bool OutputQueue::open() const {
  return !state_->closed;
}

}  // namespace vpfs::net
