#include "net/epoll_set.h"

#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>

#include <sys/syscall.h>
#include <unistd.h>

#include "base/prefetch.h"

namespace vpfs::net {
namespace {
constexpr std::uint32_t kEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;
}  // namespace

EpollSet::EpollSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_.get() < 0) throw std::system_error(errno, std::system_category(), "epoll");
}

Result<void> EpollSet::add(int descriptor, Member& member, bool wants_room) {
  epoll_event event = {.events = wants_room ? kEvents | EPOLLOUT : kEvents,
                       .data = {.ptr = &member}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  const std::error_code error(errno, std::system_category());
  return fail("epoll: " + error.message(), error);
}

void EpollSet::want_room(int descriptor, Member& member, bool wants) {
  epoll_event event = {.events = wants ? kEvents | EPOLLOUT : kEvents, .data = {.ptr = &member}};
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void EpollSet::remove(int descriptor, Member& member) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  for (std::size_t i = next_; i < count_; ++i) {
    if (events_[i].data.ptr == &member) events_[i].data.ptr = nullptr;
  }
}

bool EpollSet::serve(Duration patience) {
  const int count = wait(patience);
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
  return count > 0;
}

int EpollSet::wait(Duration patience) {
  const int most = static_cast<int>(events_.size());
  if (patience <= Duration::zero()) return ::epoll_wait(epoll_.get(), events_.data(), most, 0);
  if (!counts_milliseconds_) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(patience);
    const timespec time = {.tv_sec = seconds.count(), .tv_nsec = (patience - seconds).count()};
    const long count = ::syscall(SYS_epoll_pwait2, epoll_.get(), events_.data(), most, &time,
                                 nullptr, std::size_t{0});
    // A filter of system calls that does not know this one may answer EPERM.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(count);
    counts_milliseconds_ = true;
  }
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(patience);
  return ::epoll_wait(epoll_.get(), events_.data(), most, static_cast<int>(rounded.count()));
}

}  // namespace vpfs::net
