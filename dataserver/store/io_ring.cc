#include "dataserver/store/io_ring.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <sys/eventfd.h>

namespace vpfs::dataserver {

Result<std::unique_ptr<IoRing>> IoRing::open(asio::io_context& context) {
  std::unique_ptr<IoRing> ring(new IoRing(context));
  const auto problem = [](int error) {
    return fail(fmt::format("cannot set up io_uring: {}", std::generic_category().message(error)));
  };
  if (const int code = ::io_uring_queue_init(kDepth, &ring->ring_, 0); code < 0) {
    return problem(-code);
  }
  ring->ready_ = true;
  const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return problem(errno);
  ring->event_.assign(event);
  if (const int code = ::io_uring_register_eventfd(&ring->ring_, event); code < 0) {
    return problem(-code);
  }
  return ring;
}

IoRing::IoRing(asio::io_context& context)
    : context_(context), event_(context), has_room_(context.get_executor()) {}

IoRing::~IoRing() {
  if (ready_) ::io_uring_queue_exit(&ring_);
}

net::Task<int> IoRing::read(int file, std::span<std::byte> into, std::int64_t offset) {
  io_uring_sqe* entry = co_await take_entry();
  ::io_uring_prep_read(entry, file, into.data(), static_cast<unsigned>(into.size()),
                       static_cast<std::uint64_t>(offset));
  co_return co_await submit(entry);
}

net::Task<int> IoRing::write(int file, std::span<const std::byte> from, std::int64_t offset) {
  io_uring_sqe* entry = co_await take_entry();
  ::io_uring_prep_write(entry, file, from.data(), static_cast<unsigned>(from.size()),
                        static_cast<std::uint64_t>(offset));
  co_return co_await submit(entry);
}

net::Task<int> IoRing::sync(int file) {
  io_uring_sqe* entry = co_await take_entry();
  ::io_uring_prep_fsync(entry, file, 0);
  co_return co_await submit(entry);
}

// Every entry is submitted before another coroutine runs, so the queue always has a free one.
net::Task<io_uring_sqe*> IoRing::take_entry() {
  while (under_way_ >= kDepth) co_await has_room_.wait();
  ++under_way_;
  co_return ::io_uring_get_sqe(&ring_);
}

net::Task<int> IoRing::submit(io_uring_sqe* entry) {
  Operation operation(context_);
  ::io_uring_sqe_set_data(entry, &operation);
  if (const int code = ::io_uring_submit(&ring_); code < 0) {
    // The entry stays queued and goes with the next submission; the operation must stay too.
    ::io_uring_submit(&ring_);
  }
  wait_for_completions();
  while (!operation.finished) co_await operation.done.wait();
  co_return operation.result;
}

void IoRing::wait_for_completions() {
  if (waiting_) return;
  waiting_ = true;
  event_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    waiting_ = false;
    if (error) return;
    reap();
    if (under_way_ > 0) wait_for_completions();
  });
}

void IoRing::reap() {
  std::uint64_t count = 0;
  (void)!::read(event_.native_handle(), &count, sizeof count);
  io_uring_cqe* completion = nullptr;
  while (::io_uring_peek_cqe(&ring_, &completion) == 0) {
    auto* operation = static_cast<Operation*>(::io_uring_cqe_get_data(completion));
    operation->result = completion->res;
    operation->finished = true;
    ::io_uring_cqe_seen(&ring_, completion);
    --under_way_;
    operation->done.notify_all();
  }
  has_room_.notify_all();
}

}  // namespace vpfs::dataserver
