#include "control/coordinator/links/frame_link.h"

#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>

#include "control/wire/framing.h"

namespace vpfs::coordinator {
namespace {

// So much is read of one link before others have their turn.
constexpr std::size_t kMostInTurn = std::size_t{1024} * 1024;
// A peer that leaves more than this unread is of no use.
constexpr std::size_t kMostUnsent = std::size_t{16} * 1024 * 1024;
// A step may take a signature, before anything is known of the peer. Cycles come between.
constexpr int kHandshakesInTurn = 16;

}  // namespace

FrameLink::FrameLink(std::unique_ptr<net::ReadyStream> stream, LinkRoom& room,
                     FrameHandler& handler, std::size_t most)
    : stream_(std::move(stream)), handler_(handler), room_(room), most_(most) {}

void FrameLink::open() {
  if (auto added = room_.set.add(stream_->descriptor(), *this); !added) {
    stream_.reset();
    return handler_.ended(*this, added.error().message);
  }
  shake_hands();
}

void FrameLink::close() {
  if (stream_ == nullptr) return;
  room_.set.remove(stream_->descriptor(), *this);
  stream_.reset();
}

void FrameLink::end(const std::string& why) {
  close();
  handler_.ended(*this, problem_.empty() ? why : problem_);
}

void FrameLink::want_room(bool wants) {
  if (std::exchange(wants_room_, wants) != wants) {
    room_.set.want_room(stream_->descriptor(), *this, wants);
  }
}

bool FrameLink::has_turn_for_handshake() {
  if (!stream_->has_slow_handshake()) return true;
  if (std::exchange(room_.turn, room_.set.turn()) != room_.set.turn()) room_.handshakes = 0;
  return ++room_.handshakes <= kHandshakesInTurn;
}

void FrameLink::shake_hands() {
  if (!has_turn_for_handshake()) {
    wants_room_ = true;
    return room_.set.tell_again(stream_->descriptor(), *this, true);
  }
  const auto wants = stream_->handshake();
  if (!wants) return end(wants.error().message);
  want_room(*wants == net::ReadyStream::Wants::write);
  if (*wants != net::ReadyStream::Wants::nothing) return;
  is_ready_ = true;
  handler_.opened(*this);
}

void FrameLink::ready(bool readable, bool writable, bool has_ended) {
  if (!is_ready_) {
    shake_hands();
    if (stream_ == nullptr || !is_ready_) return;
    readable = true;  // what came with the last message of the handshake is told only once
  }
  if (writable && wants_room_) write_unsent();
  if (readable && stream_ != nullptr) read(has_ended);
}

// Less than there was room for is all that was there, unless more is inside of the stream.
void FrameLink::read(bool has_ended) {
  for (std::size_t taken = 0; taken < kMostInTurn;) {
    const net::ReadyStream::Outcome outcome = stream_->read_now(room_.buffer);
    if (outcome.error) return end(stream_->explain(outcome.error));
    if (outcome.has_ended) return end("it closed the connection");
    if (outcome.size == 0) return;
    taken += outcome.size;
    take(std::span(room_.buffer).first(outcome.size));
    if (stream_ == nullptr) return;
    if (outcome.size < room_.buffer.size() && !has_ended && !stream_->may_have_more()) return;
  }
  room_.set.tell_again(stream_->descriptor(), *this, wants_room_);
}

void FrameLink::take(std::span<const std::byte> bytes) {
  if (rest_.empty()) {
    const std::size_t taken = hand_over(bytes);
    if (stream_ == nullptr || taken == bytes.size()) return;
    rest_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(taken), bytes.end());
    return;
  }
  rest_.insert(rest_.end(), bytes.begin(), bytes.end());
  const std::size_t taken = hand_over(rest_);
  if (taken == rest_.size()) {
    std::vector<std::byte>().swap(rest_);
  } else {
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(taken));
  }
}

std::size_t FrameLink::hand_over(std::span<const std::byte> bytes) {
  std::span<const std::byte> left = bytes;
  while (stream_ != nullptr) {
    const auto frame = control::take_frame(left, most_);
    if (!frame) {
      end(fmt::format("not the control protocol: {}", control::to_string(frame.error())));
      break;
    }
    if (!*frame) break;
    handler_.received(*this, **frame);
  }
  return bytes.size() - left.size();
}

void FrameLink::send(std::string_view frames) {
  if (stream_ == nullptr) return;
  if (unsent_.empty()) {
    const auto outcome = stream_->write_now(std::as_bytes(std::span(frames)));
    // A broken connection is readable too: its end is told there.
    if (outcome.error) return;
    frames.remove_prefix(outcome.size);
    if (frames.empty()) return;
  }
  if (unsent_.size() + frames.size() > kMostUnsent) {
    problem_ = "it does not read what it is sent";
    ::shutdown(stream_->descriptor(), SHUT_RDWR);
    return;
  }
  unsent_.append(frames);
  want_room(true);
}

void FrameLink::write_unsent() {
  std::size_t sent = 0;
  while (sent < unsent_.size()) {
    const auto outcome = stream_->write_now(std::as_bytes(std::span(unsent_).subspan(sent)));
    if (outcome.error) return end(stream_->explain(outcome.error));
    if (outcome.size == 0) break;
    sent += outcome.size;
  }
  unsent_.erase(0, sent);
  if (!unsent_.empty()) return;
  std::string().swap(unsent_);
  want_room(false);
}

}  // namespace vpfs::coordinator
