#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/gate/stage_gate.h"
#include "protocols/protocol.h"
#include "stage/held.h"
#include "stage/rules/address.h"

namespace vpfs::proxy {

// Describes where the requests of one connection come from, while there is a recording. Belongs to
// a session.
class RecordedSource {
 public:
  // `connection`: its number, of this proxy's alone.
  RecordedSource(control::StageGate& gate, std::uint64_t connection, const stage::Address& client)
      : gate_(gate), connection_(connection), client_(client) {}

  // `recording`: the gate's. `jobid` as the request shows it.
  [[nodiscard]] stage::Held::Source of(const IoDescription& io, std::uint32_t recording,
                                       std::optional<std::string_view> jobid);

 private:
  control::StageGate& gate_;
  const std::uint64_t connection_;
  const stage::Address client_;
  // The last origin that the gate was asked for, which most requests share.
  std::uint32_t recording_ = 0;
  std::string jobid_;
  std::uint32_t origin_ = 0;
};

}  // namespace vpfs::proxy
