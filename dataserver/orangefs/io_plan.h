#pragma once

#include <cstdint>
#include <memory>

#include "dataserver/orangefs/handle_ranges.h"
#include "dataserver/store/outcome.h"
#include "protocols/orangefs/message.h"
#include "protocols/orangefs/striping.h"

namespace vpfs::dataserver {

// The bytes of one datafile that an IO or SMALL_IO asks for.
struct IoPlan {
  orangefs::Handle handle = 0;
  orangefs::IoType type = orangefs::IoType::read;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  // Set unless the bytes are the one run [offset, offset + size).
  std::shared_ptr<const orangefs::SparseIo> sparse;

  // How many bytes a read gets when the datafile ends at `bstream_size`.
  [[nodiscard]] std::int64_t readable(std::int64_t bstream_size) const;
};

// Walks over the bytes of a plan as runs of the datafile, in the order of sending.
class SegmentWalk {
 public:
  struct Segment {
    std::int64_t offset = 0;
    std::int64_t size = 0;
  };

  // As OrangeFS does, a read ends with the first run that goes past the datafile's `end`. A write
  // has no end. The plan must outlive the walk.
  SegmentWalk(const IoPlan& plan, std::int64_t end);
  explicit SegmentWalk(const IoPlan& plan);

  // The next segment, of at most `most` bytes; empty after the last.
  [[nodiscard]] Segment next(std::int64_t most);

 private:
  void find_run();

  const orangefs::SparseIo* sparse_;
  std::int64_t end_;
  Segment run_;            // what is left of the present run
  std::int64_t at_ = 0;    // the next position of the datatype's stream
  std::int64_t stop_ = 0;  // its end
};

// Checks the request and its capability. EOPNOTSUPP for distributions that are not known, and for
// datatypes that are malformed or have more than a few million runs.
[[nodiscard]] Outcome<IoPlan> plan_io(const orangefs::IoRequestBody& io,
                                      const orangefs::Request& request, const HandleRanges& ranges,
                                      std::uint32_t self);
[[nodiscard]] Outcome<IoPlan> plan_io(const orangefs::SmallIoRequest& io,
                                      const orangefs::Request& request, const HandleRanges& ranges,
                                      std::uint32_t self);

}  // namespace vpfs::dataserver
