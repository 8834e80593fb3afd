#include "tools/recording/recording.h"

#include <utility>

#include "tools/recording/words.h"

namespace vpfs::recording {

std::string_view word_of(IoKind kind) {
  return kKinds[std::to_underlying(kind)];
}

std::string_view word_of(stage::RecordedReason reason) {
  return kReasons[std::to_underlying(reason)];
}

std::string_view word_of(stage::RecordedEnd end) {
  return kEnds[std::to_underlying(end)];
}

}  // namespace vpfs::recording
