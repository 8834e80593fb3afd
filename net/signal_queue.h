#pragma once

#include <functional>
#include <initializer_list>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/result.h"
#include "net/descriptor.h"

namespace vpfs::net {

// Signals of a process, which wait until they are read. So none is lost between two io_contexts
// that serve one after the other.
class SignalQueue {
 public:
  // Blocks them for this thread and for all that it starts. Call it before there are others.
  [[nodiscard]] static Result<SignalQueue> open(std::initializer_list<int> signals);

  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

 private:
  explicit SignalQueue(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

// Reads the signals of a queue in an io_context. One of them at a time exists for a queue.
class SignalReader {
 public:
  using Handler = std::function<void(int signal)>;

  // Throws std::system_error if the system has no descriptor left. Both outlive it.
  SignalReader(asio::io_context& context, const SignalQueue& queue);

  // Calls it for each signal, in a turn of the context. What comes after the last turn stays in the
  // queue.
  void start(Handler handler);

 private:
  void wait();

  asio::posix::stream_descriptor descriptor_;
  Handler handler_;
};

}  // namespace vpfs::net
