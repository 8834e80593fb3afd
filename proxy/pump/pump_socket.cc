#include "proxy/pump/pump_socket.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <sys/socket.h>

#include "proxy/pump/pump.h"
#include "proxy/pump/unread.h"

namespace vpfs::proxy {

PumpSocket::PumpSocket(PumpThread& thread, net::Descriptor socket)
    : thread_(thread), socket_(std::move(socket)) {
  count_unread(socket_.get());
}

Result<void> PumpSocket::watch() {
  Result<void> added = thread_.set().add(socket_.get(), *this);
  is_watched_ = added.has_value();
  if (is_watched_ && wants_room_) want_room();
  return added;
}

void PumpSocket::unwatch() {
  if (std::exchange(is_watched_, false)) thread_.set().remove(socket_.get(), *this);
}

void PumpSocket::want_room() {
  wants_room_ = true;
  thread_.set().want_room(socket_.get(), *this, true);
}

void PumpSocket::close() {
  unwatch();
  socket_.close();
}

void PumpSocket::ready(bool readable, bool writable, bool has_ended) {
  const PumpThread::Event event(thread_);
  if (readable || has_ended) is_known_ = false;
  peer_has_ended_ = peer_has_ended_ || has_ended;
  const bool awaited = writable && writer_ != nullptr && writer_->waits_for_sink();
  if (awaited) {
    writer_->sink_is_ready();
  } else if (writable && !readable && std::exchange(wants_room_, false)) {
    // The pump is woken for room no more.
    thread_.set().want_room(socket_.get(), *this, false);
  }
  if (!is_known_ && reader_ != nullptr) reader_->source_is_ready();
}

ssize_t PumpSocket::receive(std::span<std::byte> into) {
  return read(into.data(), into.size(), 0);
}

ssize_t PumpSocket::peek(std::span<std::byte> into) {
  return read(into.data(), into.size(), MSG_PEEK);
}

ssize_t PumpSocket::drop(std::size_t size) {
  return read(nullptr, size, MSG_TRUNC);
}

ssize_t PumpSocket::read(void* to, std::size_t size, int flags) {
  std::optional<std::size_t> unread;
  const ssize_t received =
      thread_.calls().recv(socket_.get(), to, size, flags | MSG_DONTWAIT, unread);
  if (received >= 0) {
    is_known_ = unread.has_value();
    unread_ = unread.value_or(0);
  } else if (errno == EAGAIN) {
    note_empty();
  }
  return received;
}

void PumpSocket::note_spliced(ssize_t moved) {
  if (moved > 0) {
    unread_ -= std::min(unread_, static_cast<std::size_t>(moved));
  } else if (moved < 0 && errno == EAGAIN) {
    note_empty();
  }
}

void PumpSocket::note_empty() {
  is_known_ = true;
  peer_has_ended_ = false;
  unread_ = 0;
}

}  // namespace vpfs::proxy
