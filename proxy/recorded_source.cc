#include "proxy/recorded_source.h"

#include <algorithm>

#include "stage/rules/template_name.h"
#include "stage/rules/text_hash.h"

namespace vpfs::proxy {
namespace {

// A file has the same name however it was opened: what follows "#" in a handle of BeeGFS.
std::uint64_t file_of(const IoDescription& io) {
  if (io.file != 0 || io.open_file.empty()) return io.file;
  const std::string_view file = io.open_file.substr(io.open_file.find('#') + 1);
  return std::max<std::uint64_t>(stage::TextHash()(file), 1);
}

}  // namespace

stage::Held::Source RecordedSource::of(const IoDescription& io, std::uint32_t recording,
                                       std::optional<std::string_view> jobid) {
  const std::string_view job = jobid && jobid->size() <= stage::kLongestName ? *jobid : "";
  if (recording != recording_ || job != jobid_) {
    recording_ = recording;
    jobid_ = job;
    origin_ =
        gate_.number_of({.connection = connection_, .client = client_, .jobid = jobid_}, recording)
            .value_or(stage::Recorder::kOther);
  }
  return {.recording = recording,
          .origin = origin_,
          .uid = io.uid.value_or(stage::Recorded::kNoUser),
          .file = file_of(io),
          .offset = io.offset.value_or(stage::Recorded::kNoOffset)};
}

}  // namespace vpfs::proxy
