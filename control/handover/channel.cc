#include "control/handover/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/check.h"
#include "base/system_clock.h"

namespace vpfs::control {
namespace {

constexpr std::uint32_t kMagic = 0x6f687076;  // "vpho"
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

std::unexpected<Error> problem(std::string_view what) {
  const std::error_code error(errno, std::system_category());
  return fail(fmt::format("{}: {}", what, error.message()), error);
}

TimePoint time_now() {
  return SystemClock().now();
}

}  // namespace

struct HandoverChannel::Header {
  std::uint32_t magic = kMagic;
  std::uint32_t kind = 0;
  std::uint64_t size = 0;
};

Result<HandoverChannel> HandoverChannel::dial(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(fmt::format("{}: the path of a socket has 1 to {} bytes", path,
                            sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  net::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return problem(path);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return problem(fmt::format("{}: no program hands its connections over there", path));
  }
  return HandoverChannel(std::move(socket));
}

Result<void> HandoverChannel::wait(short events, TimePoint deadline) {
  for (;;) {
    const Duration left = std::max(deadline - time_now(), Duration::zero());
    pollfd entry = {.fd = socket_.get(), .events = events, .revents = 0};
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(milliseconds, 1000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return problem("the hand-over's socket");
    if (time_now() >= deadline) {
      return fail("the other program did not answer in time",
                  std::make_error_code(std::errc::timed_out));
    }
  }
}

bool HandoverChannel::is_readable(Duration patience) {
  return wait(POLLIN, time_now() + patience).has_value();
}

void HandoverChannel::refuse_more() {
  (void)::shutdown(socket_.get(), SHUT_RD);
}

void HandoverChannel::close() {
  (void)::shutdown(socket_.get(), SHUT_RDWR);
  socket_.close();
}

Result<void> HandoverChannel::send(HandoverKind kind, const SavedState& state,
                                   std::span<const int> descriptors, Duration patience) {
  VPFS_ASSERT(descriptors.size() <= kMostDescriptors);
  const TimePoint deadline = time_now() + patience;
  const std::string body = state.encode();
  const Header header = {.kind = static_cast<std::uint32_t>(kind), .size = body.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += body;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control = {};
  bool with_descriptors = !descriptors.empty();
  for (std::size_t sent = 0; sent < bytes.size();) {
    iovec part = {.iov_base = bytes.data() + sent, .iov_len = bytes.size() - sent};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (with_descriptors) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* const first = CMSG_FIRSTHDR(&message);
      first->cmsg_level = SOL_SOCKET;
      first->cmsg_type = SCM_RIGHTS;
      first->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(first), descriptors.data(), descriptors.size_bytes());
    }
    const ssize_t size = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) {
      sent += static_cast<std::size_t>(size);
      with_descriptors = false;
    } else if (errno == EAGAIN) {
      VPFS_TRY(wait(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return problem("the other program is gone");
    }
  }
  return {};
}

// Reads all of it. Descriptors come with the first byte of a message.
Result<void> HandoverChannel::read(void* to, std::size_t size, TimePoint deadline,
                                   HandoverMessage* with_descriptors) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control = {};
  for (std::size_t done = 0; done < size;) {
    iovec part = {.iov_base = static_cast<char*>(to) + done, .iov_len = size - done};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t received = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received == 0) {
      return fail("the other program is gone", std::make_error_code(std::errc::connection_reset));
    }
    if (received < 0 && errno == EAGAIN) {
      VPFS_TRY(wait(POLLIN, deadline));
      continue;
    }
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return problem("the other program is gone");
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
         each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
      for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= each->cmsg_len; at += sizeof(int)) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(each) + at, sizeof descriptor);
        net::Descriptor owned(descriptor);
        if (with_descriptors != nullptr) with_descriptors->descriptors.push_back(std::move(owned));
      }
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0 && with_descriptors != nullptr) {
      with_descriptors->lacks_descriptors = true;
    }
    done += static_cast<std::size_t>(received);
  }
  return {};
}

Result<HandoverMessage> HandoverChannel::receive(Duration patience) {
  Result<HandoverMessage> message = receive_some(patience);
  if (!message || !message->lacks_descriptors) return message;
  return fail("descriptors do not arrive: this process may have too few (limit of open files)",
              std::make_error_code(std::errc::too_many_files_open));
}

Result<HandoverMessage> HandoverChannel::receive_some(Duration patience) {
  const TimePoint deadline = time_now() + patience;
  HandoverMessage message;
  Header header;
  VPFS_TRY(read(&header, sizeof header, deadline, &message));
  if (header.magic != kMagic || header.size > kMostBytes) {
    return fail("the other program does not speak the protocol of hand-overs");
  }
  std::string body(header.size, '\0');
  VPFS_TRY(read(body.data(), body.size(), deadline, nullptr));
  Result<SavedState> state = SavedState::decode(body);
  VPFS_TRY(state);
  message.kind = HandoverKind(header.kind);
  message.state = std::move(*state);
  if (message.kind == HandoverKind::failed || message.kind == HandoverKind::refused) {
    return fail(std::string(message.state.text("text")));
  }
  return message;
}

}  // namespace vpfs::control
