#include "net/mailbox.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/eventfd.h>

namespace vpfs::net {

Mailbox::Mailbox(EpollSet& set) : set_(set), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_.get() < 0) throw std::system_error(errno, std::system_category(), "eventfd");
  if (const Result<void> added = set.add(event_.get(), *this); !added) {
    throw std::system_error(added.error().code, "eventfd");
  }
}

void Mailbox::post(std::function<void()> what) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = posted_.empty();
    posted_.push_back(std::move(what));
  }
  // The set is told of each write, so none need be read.
  if (is_first) (void)::eventfd_write(event_.get(), 1);
}

void Mailbox::ready(bool /*readable*/, bool /*writable*/, bool /*has_ended*/) {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(posted_);
  }
  for (std::function<void()>& each : running_) each();
  running_.clear();
}

}  // namespace vpfs::net
