#pragma once

#include <cstdint>

#include "dataserver/handle_ranges.h"
#include "dataserver/outcome.h"
#include "protocols/pvfs2/message.h"

namespace vpfs::dataserver {

// The bytes of one datafile that an IO or SMALL_IO asks for.
struct IoPlan {
  pvfs2::Handle handle = 0;
  pvfs2::IoType type = pvfs2::IoType::read;
  std::int64_t offset = 0;
  std::int64_t size = 0;

  // Of a read: how much there is when the datafile ends at `bstream_size`.
  [[nodiscard]] std::int64_t readable(std::int64_t bstream_size) const;
};

// Checks the request and its capability. EOPNOTSUPP for datatypes with holes and for distributions
// that do not keep a file's bytes in order on each datafile.
[[nodiscard]] Outcome<IoPlan> plan_io(const pvfs2::IoRequestBody& io, const pvfs2::Request& request,
                                      const HandleRanges& ranges, std::uint32_t self);
[[nodiscard]] Outcome<IoPlan> plan_io(const pvfs2::SmallIoRequest& io,
                                      const pvfs2::Request& request, const HandleRanges& ranges,
                                      std::uint32_t self);

}  // namespace vpfs::dataserver
