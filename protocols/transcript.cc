#include "protocols/transcript.h"

#include <array>

#include "protocols/beegfs/transcript.h"
#include "protocols/orangefs/transcript.h"

namespace vpfs {

std::span<const TranscriptKind> transcript_kinds() {
  static constexpr std::array<TranscriptKind, 2> kKinds = {{
      {.name = "orangefs", .recognise = orangefs::recognise, .make = orangefs::make_transcript},
      {.name = "beegfs", .recognise = beegfs::recognise, .make = beegfs::make_transcript},
  }};
  return kKinds;
}

}  // namespace vpfs
