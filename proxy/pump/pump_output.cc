#include "proxy/pump/pump_output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

#include "base/check.h"

namespace vpfs::proxy {
namespace {
// A larger buffer is freed when the receiver has taken all of it.
constexpr std::size_t kMostIdleBuffer = std::size_t{48} * 1024;
// Kept bytes that were sent are dropped when there are so many, and more than others.
constexpr std::size_t kMostSent = std::size_t{64} * 1024;
}  // namespace

void PumpOutput::inject(std::span<const std::byte> message) {
  const bool in_pipe = pipe_ && pipe_->size() > 0;
  if (!in_mid_message_ && !in_pipe && waiting_.empty()) return keep(message);
  if (waiting_.empty()) waiting_since_ = thread_.now();
  waiting_.insert(waiting_.end(), message.begin(), message.end());
}

std::vector<std::byte> PumpOutput::queued() const {
  std::vector<std::byte> all(kept_.begin() + static_cast<std::ptrdiff_t>(done_), kept_.end());
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  return all;
}

PumpOutput::Outcome PumpOutput::send_injected(bool may_send) {
  Outcome outcome = Outcome::all;
  if (borrowed_.empty()) return outcome;
  if (may_send && !in_mid_message_ && empty()) {
    outcome = send(borrowed_, 0);
  } else {
    for (const std::span<const std::byte> message : borrowed_) inject(message);
  }
  borrowed_.clear();
  return outcome;
}

PumpOutput::Outcome PumpOutput::send_behind_injected(Parts runs, bool more_follows) {
  PumpThread::Parts& parts = thread_.parts();
  parts.assign(borrowed_.begin(), borrowed_.end());
  borrowed_.clear();
  parts.insert(parts.end(), runs.begin(), runs.end());
  return send(parts, more_follows ? MSG_MORE : 0);
}

PumpOutput::Outcome PumpOutput::forward(Parts runs) {
  if (empty() && waiting_.empty()) return send(runs, 0);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    keep(runs[i]);
    if (i == 0 && (runs.size() > 1 || !in_mid_message_)) keep_waiting();
  }
  return Outcome::all;
}

// Sends from where the parts are, and keeps what the socket does not take.
PumpOutput::Outcome PumpOutput::send(Parts parts, int flags) {
  while (!parts.empty()) {
    std::array<iovec, 64> vector = {};
    const std::size_t count = std::min(parts.size(), vector.size());
    std::size_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      vector[i] = {.iov_base = const_cast<std::byte*>(parts[i].data()), .iov_len = parts[i].size()};
      total += parts[i].size();
    }
    msghdr header = {};
    header.msg_iov = vector.data();
    header.msg_iovlen = count;
    const ssize_t sent =
        thread_.calls().sendmsg(sink_, header, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return fail();
    std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
    if (done > 0) note_sent(done);
    if (done == total) {
      parts = parts.subspan(count);
      continue;
    }
    for (const std::span<const std::byte> part : parts) {
      const std::size_t size = std::min(done, part.size());
      done -= size;
      keep(part.subspan(size));
    }
    return Outcome::blocked;
  }
  return Outcome::all;
}

std::optional<ssize_t> PumpOutput::splice_from(int source, std::uint64_t size) {
  if (!pipe_) pipe_ = thread_.pipes().take();
  if (!pipe_) return std::nullopt;
  VPFS_ASSERT(pipe_->size() == 0);
  const ssize_t moved = thread_.calls().fill(*pipe_, source, static_cast<std::size_t>(size));
  if (moved <= 0) {
    const int error = errno;
    thread_.pipes().give_back(std::move(pipe_));
    errno = error;
  }
  return moved;
}

PumpOutput::Outcome PumpOutput::write() {
  for (;;) {
    ssize_t sent = 0;
    if (done_ < kept_.size()) {
      sent = thread_.calls().send(sink_, kept_.data() + done_, kept_.size() - done_,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) done_ += static_cast<std::size_t>(sent);
    } else if (pipe_ && pipe_->size() > 0) {
      sent = thread_.calls().drain(*pipe_, sink_);
    } else {
      kept_.clear();
      done_ = 0;
      if (kept_.capacity() > kMostIdleBuffer) kept_.shrink_to_fit();
      if (pipe_) thread_.pipes().give_back(std::move(pipe_));
      if (in_mid_message_ || waiting_.empty()) return Outcome::all;
      keep_waiting();
      continue;
    }
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? Outcome::blocked : fail();
    }
    note_sent(static_cast<std::size_t>(sent));
  }
}

// A socket that never takes all of it would otherwise let the sent part grow for ever.
void PumpOutput::keep(std::span<const std::byte> bytes) {
  if (done_ >= kMostSent && done_ > kept_.size() / 2) {
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(done_));
    done_ = 0;
  }
  kept_.insert(kept_.end(), bytes.begin(), bytes.end());
}

void PumpOutput::keep_waiting() {
  keep(waiting_);
  waiting_.clear();
  if (waiting_.capacity() > kMostIdleBuffer) waiting_.shrink_to_fit();
}

void PumpOutput::note_sent(std::size_t size) {
  bytes_sent_ += size;
  if (!blocked_since_) return;
  blocked_since_.reset();
  unblocked_ = true;
}

PumpOutput::Outcome PumpOutput::fail() {
  error_ = errno;
  return Outcome::failed;
}

}  // namespace vpfs::proxy
