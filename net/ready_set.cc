#include "net/ready_set.h"

#include <chrono>
#include <memory>
#include <system_error>

namespace vpfs::net {
namespace {
// So many batches and waits go by before the event loop has its turn.
constexpr int kBatches = 8;
constexpr Duration kPatience = std::chrono::milliseconds(1);
}  // namespace

ReadySet::ReadySet(asio::io_context& context) : loop_(context, set_.descriptor()) {}

Result<std::unique_ptr<ReadySet>> ReadySet::make(asio::io_context& context) {
  try {
    std::unique_ptr<ReadySet> set(new ReadySet(context));
    set->wait();
    return set;
  } catch (const std::system_error& error) {
    return fail("epoll: " + error.code().message(), error.code());
  }
}

void ReadySet::close() {
  if (loop_.is_open()) (void)loop_.release();
  set_.close();
}

void ReadySet::wait() {
  loop_.async_wait(asio::posix::descriptor_base::wait_read, [this](std::error_code error) {
    if (error) return;
    serve();
    if (loop_.is_open()) wait();
  });
}

void ReadySet::serve() {
  ++turn_;
  bool waits = false;
  for (int i = 0; i < kBatches && loop_.is_open(); ++i) {
    const bool had_any = serve_batch(waits ? kPatience : Duration::zero());
    // Whoever waits for the event loop waits no longer than once for nothing.
    if (!expects_more_ || (waits && !had_any)) return;
    waits = waits || !had_any;
  }
}

void ReadySet::serve_now() {
  if (!is_serving_ && loop_.is_open()) (void)serve_batch(Duration::zero());
}

bool ReadySet::serve_batch(Duration patience) {
  is_serving_ = true;
  const bool had_any = set_.serve(patience);
  is_serving_ = false;
  return had_any;
}

}  // namespace vpfs::net
