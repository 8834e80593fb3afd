#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "net/descriptor.h"

namespace vpfs::fuse {

// A pipe that holds one message of the kernel. The data of a write through the page cache are not
// copied: the pipe refers to the pages. One descriptor is both of its ends. Not thread-safe.
class MessagePipe {
 public:
  MessagePipe() = default;
  // One of another process.
  explicit MessagePipe(net::Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(descriptor_); }
  [[nodiscard]] int get() const { return descriptor_.get(); }

  // The largest write whose message fits into a pipe that the system allows; 0: no useful one does.
  // Tries it.
  [[nodiscard]] static std::size_t largest_write();

  // A pipe for messages with writes of that size, if it has none. False: there is none now.
  [[nodiscard]] bool open(std::size_t largest_write);
  // What it holds is dropped.
  void close() { descriptor_ = net::Descriptor(); }
  // Takes so many bytes out. False: it has fewer.
  [[nodiscard]] bool take(std::span<std::byte> into) const;
  // It holds `bytes` and is not filled again, so its room for more is given back.
  void fit(std::size_t bytes) const;

 private:
  net::Descriptor descriptor_;
};

}  // namespace vpfs::fuse
