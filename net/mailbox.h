#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "net/descriptor.h"
#include "net/epoll_set.h"

namespace vpfs::net {

// Functions that any thread posts to the thread that serves an EpollSet. They run in their order,
// in one turn of the set; what they post runs in a later one.
class Mailbox final : private EpollSet::Member {
 public:
  // Throws std::system_error if the system has no descriptor left. The set outlives the mailbox.
  explicit Mailbox(EpollSet& set);
  ~Mailbox() override { set_.remove(event_.get(), *this); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // From any thread. What is never run is destroyed with the mailbox.
  void post(std::function<void()> what);

 private:
  void ready(bool readable, bool writable, bool has_ended) override;

  EpollSet& set_;
  Descriptor event_;  // an eventfd, which tells of each write
  std::vector<std::function<void()>> running_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::function<void()>> posted_;
};

}  // namespace vpfs::net
