#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <system_error>

#include "protocols/protocol.h"

namespace vpfs::proxy {

// What a pump needs of the session that it moves bytes for. `from` names the sender of the pump's
// stream: one owner serves the pumps of both directions. No call comes after Pump::stop(), but that
// the bytes that a pump is just looking at are looked at to their end.
class PumpOwner {
 public:
  // Decides what to do with the bytes at the head of the stream, as Conversation::next().
  [[nodiscard]] virtual Step next(Sender from, std::span<const std::byte> bytes) = 0;
  // The last step was `hold` for these bytes, which are valid until the call returns.
  virtual void hold(std::span<const std::byte> message) = 0;
  // The last byte of what a step called Step::finished has come from its sender.
  virtual void finished(const FinishedIo& io) = 0;
  // All received bytes have been looked at; the other stream may have waited for that.
  virtual void stepped(Sender from) = 0;
  // The receiver takes bytes again after it had taken none for a while.
  virtual void sink_moved(Sender from) = 0;

  // The pump cannot go on: the owner has to stop it before the event ends.
  virtual void lost_framing(Sender from) = 0;
  // Without an error: the sender has closed its end.
  virtual void source_ended(Sender from, std::error_code error) = 0;
  virtual void sink_failed(Sender from, std::error_code error) = 0;

  // Keeps the owner, and so its pumps, alive while a wait is in flight.
  [[nodiscard]] virtual std::shared_ptr<void> keep_alive() = 0;

 protected:
  ~PumpOwner() = default;
};

}  // namespace vpfs::proxy
