#pragma once

#include <cstddef>
#include <span>
#include <system_error>

#include "protocols/protocol.h"

namespace vpfs::proxy {

// What a pump needs of the session that it moves bytes for. `from` names the sender of the pump's
// stream; one owner serves the pumps of both directions. After Pump::stop() no call comes, except
// while the pump finishes the bytes that it is parsing.
class PumpOwner {
 public:
  // Decides about the bytes at the head of the stream, like Conversation::next().
  [[nodiscard]] virtual Step next(Sender from, std::span<const std::byte> bytes) = 0;
  // Takes the message of the last step, `hold`. The bytes are valid during the call.
  virtual void hold(std::span<const std::byte> message) = 0;
  // The sender has sent the last byte of a step with Step::finished.
  virtual void finished(const FinishedIo& io) = 0;
  // All received bytes are parsed. The other stream may have waited for that.
  virtual void stepped(Sender from) = 0;
  // The receiver takes bytes again after a pause.
  virtual void sink_moved(Sender from) = 0;

  // The pump cannot continue. The owner must stop it before the event ends.
  virtual void lost_framing(Sender from) = 0;
  // No error means that the sender has closed its end.
  virtual void source_ended(Sender from, std::error_code error) = 0;
  virtual void sink_failed(Sender from, std::error_code error) = 0;

 protected:
  ~PumpOwner() = default;
};

}  // namespace vpfs::proxy
