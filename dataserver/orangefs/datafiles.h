#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

#include "dataserver/store/bstream_store.h"
#include "dataserver/store/outcome.h"
#include "protocols/orangefs/basic_types.h"

namespace vpfs::dataserver {

// The datafiles of one server, which are bstreams with the same number. A datafile needs no request
// to be there (docs/decisions/0020-datafile-handles.md), so one that was removed would be an empty
// one. Clients that still read it, or ask for its size, would take its file for empty, and a late
// write would bring it back. So the last 65,536 that were removed are kept in mind: they do not
// exist. Their handles are not used again.
//
// Belongs to the strand of the store, which outlives it.
class Datafiles {
 public:
  explicit Datafiles(BstreamStore& store) : store_(store) {}

  // ENOENT of one that was removed.
  [[nodiscard]] Outcome<std::int64_t> size(orangefs::Handle handle);
  [[nodiscard]] Outcome<void> truncate(orangefs::Handle handle, std::int64_t size);
  // Removing one that was removed, or never written, is not an error.
  [[nodiscard]] Outcome<void> remove(orangefs::Handle handle);

 private:
  static constexpr std::size_t kMostRemoved = 65536;

  BstreamStore& store_;
  std::unordered_set<orangefs::Handle> removed_;
  std::deque<orangefs::Handle> in_order_;
};

}  // namespace vpfs::dataserver
