#include "net/ready_set.h"

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "base/prefetch.h"

namespace vpfs::net {
namespace {

constexpr std::uint32_t kEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;
// So many batches and waits go by before the event loop has its turn.
constexpr int kBatches = 8;
constexpr int kPatienceMs = 1;

}  // namespace

Result<std::unique_ptr<ReadySet>> ReadySet::make(asio::io_context& context) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) {
    const std::error_code error(errno, std::system_category());
    return fail("epoll: " + error.message(), error);
  }
  std::unique_ptr<ReadySet> set(new ReadySet(context, epoll));
  set->wait();
  return set;
}

Result<void> ReadySet::add(int descriptor, Member& member) {
  epoll_event event = {.events = kEvents, .data = {.ptr = &member}};
  if (::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  const std::error_code error(errno, std::system_category());
  return fail("epoll: " + error.message(), error);
}

void ReadySet::want_room(int descriptor, Member& member, bool wants) {
  epoll_event event = {.events = wants ? kEvents | EPOLLOUT : kEvents, .data = {.ptr = &member}};
  (void)::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_MOD, descriptor, &event);
}

void ReadySet::remove(int descriptor, Member& member) {
  (void)::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, descriptor, nullptr);
  for (std::size_t i = next_; i < count_; ++i) {
    if (events_[i].data.ptr == &member) events_[i].data.ptr = nullptr;
  }
}

void ReadySet::close() {
  count_ = 0;
  std::error_code ignored;
  epoll_.close(ignored);
}

void ReadySet::wait() {
  epoll_.async_wait(asio::posix::descriptor_base::wait_read, [this](std::error_code error) {
    if (error) return;
    serve();
    if (epoll_.is_open()) wait();
  });
}

void ReadySet::serve() {
  bool waits = false;
  for (int i = 0; i < kBatches && epoll_.is_open(); ++i) {
    const bool had_any = serve_batch(waits ? kPatienceMs : 0);
    // Whoever waits for the event loop waits no longer than once for nothing.
    if (!expects_more_ || (waits && !had_any)) return;
    waits = waits || !had_any;
  }
}

void ReadySet::serve_now() {
  if (!is_serving_ && epoll_.is_open()) (void)serve_batch(0);
}

bool ReadySet::serve_batch(int patience_ms) {
  is_serving_ = true;
  const int count = ::epoll_wait(epoll_.native_handle(), events_.data(),
                                 static_cast<int>(events_.size()), patience_ms);
  count_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  for (next_ = 0; next_ < count_;) {
    const epoll_event event = events_[next_++];
    if (next_ + 1 < count_) prefetch<4>(events_[next_ + 1].data.ptr);
    if (event.data.ptr == nullptr) continue;
    const bool is_broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    static_cast<Member*>(event.data.ptr)
        ->ready(is_broken || (event.events & EPOLLIN) != 0,
                is_broken || (event.events & EPOLLOUT) != 0,
                is_broken || (event.events & EPOLLRDHUP) != 0);
  }
  count_ = 0;
  is_serving_ = false;
  return count > 0;
}

}  // namespace vpfs::net
