#pragma once

#include <cstdint>

#include "control/wire/control.pb.h"
#include "control/wire/rights.h"

namespace vpfs::control {

// Whether a coordinator passes a request on to stages.
enum class Forwarding : std::uint8_t {
  never,
  lists,  // if it only asks what there is; the rest is the site's
  always,
};

// Something that a peer may ask for.
struct RequestKind {
  Envelope::BodyCase body;
  Rights (*needs)(const Envelope& request);
  Forwarding forwarding = Forwarding::never;
  bool is_audited = true;  // if it changes something
};

// Nothing: the message is an answer, what only a stage says, or not known. All requests are in the
// table behind this function, and nowhere else.
[[nodiscard]] const RequestKind* find_request(const Envelope& message);

// What a request needs: `change` if it is not known.
[[nodiscard]] Rights needed_right(const Envelope& request);
// Whether it belongs into the audit log: what changes something, except the cycles of a
// coordinator.
[[nodiscard]] bool is_audited(const Envelope& request);
// Whether it only asks what rules, their history or jobs there are.
[[nodiscard]] bool is_list(const Envelope& request);

}  // namespace vpfs::control
