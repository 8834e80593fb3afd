#include "fuse/posix/splice_pipe.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuse/message.h"
#include "fuse/posix/pipe_size.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kPage = Buffer::kPage;
// An answer's head and its data begin a page each.
constexpr std::size_t kWanted = 2 * kLargestIo;
constexpr std::size_t kEnough = kLargestIo;

// The bytes that it holds; 0: there is none.
std::size_t make_pipe(net::Descriptor& out, net::Descriptor& in) {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return 0;
  out = net::Descriptor(ends[0]);
  in = net::Descriptor(ends[1]);
  const std::size_t size = set_pipe_size(in.get(), kWanted);
  return size >= kWanted ? size : set_pipe_size(in.get(), kEnough);
}

}  // namespace

bool SplicePipe::has_room_for(std::size_t size) {
  net::Descriptor out;
  net::Descriptor in;
  return make_pipe(out, in) / kPage >= pages_of_message(size);
}

bool SplicePipe::open() {
  if (in_ || refused_) return !refused_;
  room_ = make_pipe(out_, in_);
  refused_ = room_ == 0;
  return !refused_;
}

void SplicePipe::close() {
  out_ = net::Descriptor();
  in_ = net::Descriptor();
}

bool SplicePipe::drain(std::span<std::byte> data) {
  fuse_out_header head;
  const std::array<iovec, 2> parts = {iovec{.iov_base = &head, .iov_len = sizeof head},
                                      iovec{.iov_base = data.data(), .iov_len = data.size()}};
  const ssize_t taken = ::readv(out_.get(), parts.data(), parts.size());
  return taken == static_cast<ssize_t>(sizeof head + data.size());
}

bool SplicePipe::answer(Channel& channel, std::uint64_t unique, int file, std::uint64_t offset,
                        std::span<std::byte> into, std::uint64_t& moved) {
  moved = 0;
  if (!open() || room_ / kPage < pages_of_message(into.size())) return false;
  const std::size_t size = sizeof(fuse_out_header) + into.size();
  const fuse_out_header head = {
      .len = static_cast<std::uint32_t>(size), .error = 0, .unique = unique};
  // It is in its place before the data, so it says the size that is expected.
  if (::write(in_.get(), &head, sizeof head) != static_cast<ssize_t>(sizeof head)) {
    close();
    return false;
  }
  auto at = static_cast<off_t>(offset);
  while (moved < into.size()) {
    const ssize_t got = ::splice(file, &at, in_.get(), nullptr, into.size() - moved, SPLICE_F_MOVE);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    moved += static_cast<std::uint64_t>(got);
  }
  const bool is_whole = moved == into.size();
  if (is_whole && channel.answer_from(out_.get(), size)) return true;
  // What is left in the pipe must not come before the next answer.
  if (is_whole || !drain(into.first(moved))) {
    moved = 0;
    close();
  }
  return false;
}

}  // namespace vpfs::fuse
