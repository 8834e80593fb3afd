#include "protocols/transcript.h"

#include <array>

#include "protocols/pvfs2/transcript.h"

namespace vpfs {

std::span<const TranscriptKind> transcript_kinds() {
  static constexpr std::array<TranscriptKind, 1> kKinds = {{
      {.name = "orangefs", .recognise = pvfs2::recognise, .make = pvfs2::make_transcript},
  }};
  return kKinds;
}

}  // namespace vpfs
