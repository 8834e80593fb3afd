// The part of Stage that tells a recorder of requests.
#include <algorithm>

#include "stage/stage.h"

namespace vpfs::stage {
namespace {

bool was_sent(const Held& io) {
  return io.state == Held::State::released || io.state == Held::State::outstanding ||
         io.state == Held::State::given_up;
}

}  // namespace

void Stage::note_wait(Held& io, TimePoint now) {
  io.noted_in = recorder_->settings().number;
  io.noted = {.schedulers = schedulers_, .held = scheduler_of(io).held(io.app, now)};
}

// While a request waits, the head of its queue does, which may be another one. What held the heads
// held it.
RecordedReason Stage::reason_so_far(const Held& io, TimePoint now) {
  if (io.unscheduled || io.noted_in != recorder_->settings().number) {
    return RecordedReason::nothing;
  }
  if (io.noted.schedulers != schedulers_) return io.noted.reason;
  return reason_of(scheduler_of(io).held(io.app, now) - io.noted.held);
}

void Stage::note_end(const Held& io, RecordedEnd how, Bytes moved, TimePoint now) {
  const Recorder::Settings& recording = recorder_->settings();
  const bool sent = was_sent(io);
  const TimePoint left = sent ? io.sent : now;
  const bool could_be_held = !io.unscheduled || io.let_pass;
  const bool is_noted = could_be_held && io.noted_in == recording.number;
  const RecordedReason noted = is_noted ? io.noted.reason : RecordedReason::nothing;
  const Held::Source source = io.source.recording == recording.number ? io.source : Held::Source();
  recorder_->write({.arrival_ns = (io.arrival - recording.begin).count(),
                    .file = source.file,
                    .offset = source.offset,
                    .asked = std::max({io.asked, io.size, moved}).count,
                    .moved = moved.count,
                    .wait = Recorded::ticks(left - io.arrival),
                    .service = Recorded::ticks(now - left),
                    .origin = source.origin,
                    .uid = source.uid,
                    .kind = io.kind,
                    .reason = sent ? noted : reason_so_far(io, now),
                    .end = how,
                    .unscheduled = !could_be_held},
                   {.app = io.app, .generation = io.generation}, table_[io.app].info->name, now);
}

}  // namespace vpfs::stage
