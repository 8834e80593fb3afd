#include "net/signal_queue.h"

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <sys/signalfd.h>
#include <unistd.h>

namespace vpfs::net {
namespace {

int copy_of(int descriptor) {
  const int copy = ::dup(descriptor);
  if (copy < 0) throw std::system_error(errno, std::system_category(), "dup");
  return copy;
}

}  // namespace

Result<SignalQueue> SignalQueue::open(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Descriptor descriptor(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (descriptor.get() < 0) {
    const std::error_code code(errno, std::system_category());
    return fail("a descriptor for signals: " + code.message(), code);
  }
  return SignalQueue(std::move(descriptor));
}

SignalReader::SignalReader(asio::io_context& context, const SignalQueue& queue)
    : descriptor_(context, copy_of(queue.descriptor())) {}

void SignalReader::start(Handler handler) {
  handler_ = std::move(handler);
  wait();
}

// One at a time: the handler may be the last thing that its context does.
void SignalReader::wait() {
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    signalfd_siginfo signal = {};
    const ssize_t size = ::read(descriptor_.native_handle(), &signal, sizeof signal);
    if (size == static_cast<ssize_t>(sizeof signal)) handler_(static_cast<int>(signal.ssi_signo));
    wait();
  });
}

}  // namespace vpfs::net
