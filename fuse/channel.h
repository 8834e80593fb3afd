#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "fuse/buffer.h"
#include "fuse/message.h"

struct fuse_session;

namespace vpfs::fuse {

// One descriptor of a mount: it gives the kernel's messages, and takes the answers to those that
// it gave. Messages may be answered from any thread, in any order.
//
// Reads and writes of file data are the owner's own. libfuse decodes and answers everything else;
// it sees each message once, through process(). An answer to a message that has one already is
// dropped by the kernel, so an interrupted operation may end as if nothing had happened.
class Channel {
 public:
  enum class Nothing {
    now,       // of a non-blocking descriptor; or a signal came
    any_more,  // the file system is not mounted any more
  };

  // Owns the session, which owns the descriptor that it answers through.
  explicit Channel(fuse_session* session);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }

  // The next message, in `buffer`.
  [[nodiscard]] std::expected<std::span<std::byte>, Nothing> receive(const Buffer& buffer);

  // The same into a pipe that is empty and has room for the largest message; its size.
  [[nodiscard]] std::expected<std::size_t, Nothing> receive_into(int pipe);

  // Calls the operation of the session's owner that the message asks for.
  void process(std::span<std::byte> message);

  // Answers message number `unique`: with an errno, with data, or a write with what it took.
  void fail(std::uint64_t unique, int number);
  void answer(std::uint64_t unique, std::span<const std::byte> body);
  void answer_write(std::uint64_t unique, std::uint32_t size);
  // Answers with a message of `size` bytes, which is all that a pipe holds. False: the kernel has
  // not taken it, and what the pipe holds now is unknown.
  [[nodiscard]] bool answer_from(int pipe, std::size_t size);
  // The kernel asks for an object's attributes again.
  void attributes_changed(std::uint64_t inode);
  // The kernel forgets what it knows under a name of a directory, also if it is in use: what is
  // mounted on it is detached, so it must not be the name of a directory. Waits until no other
  // request changes or looks up names there.
  void forget_name(std::uint64_t directory, const std::string& name);

 private:
  // Calls `read` until it gives a message.
  template <typename Read>
  [[nodiscard]] std::expected<std::size_t, Nothing> receive_by(Read read);
  void send(const fuse_out_header& header, std::span<const std::byte> body);

  fuse_session* session_;
  int descriptor_;
};

}  // namespace vpfs::fuse
