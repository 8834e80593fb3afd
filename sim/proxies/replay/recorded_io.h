#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/io_kind.h"
#include "base/units.h"
#include "stage/rules/address.h"

namespace vpfs::sim {

// Whose requests were recorded: one user and job of one connection.
struct RecordedSource {
  stage::Address client;
  std::optional<std::uint32_t> uid = std::nullopt;
  std::string jobid;        // that its requests show; "": none
  std::string virtual_pfs;  // that they belonged to
  // Nothing but the virtual PFS is known: they came before the recording began, or...
  bool is_unknown = false;
  // ... are of all sources that the recording has no numbers for. REQUIRES: is_unknown.
  bool is_one_of_many = false;

  auto operator<=>(const RecordedSource&) const = default;
};

// A request that a stage has recorded, with times since the recording began.
struct RecordedIo {
  TimePoint arrival;  // before the beginning: it is under way then
  TimePoint sent;
  TimePoint end;
  IoKind kind = IoKind::read;
  Bytes size;                // that the server moved
  std::uint32_t source = 0;  // index
};

struct RecordedLoad {
  Duration length = {};
  bool names_are_full = false;  // some sources have no job, or are not told apart
  std::vector<RecordedSource> sources;
  std::vector<RecordedIo> requests;  // by their arrivals
};

}  // namespace vpfs::sim
