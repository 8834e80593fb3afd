#include "bench/data_path/stage/record_case.h"

#include <deque>
#include <string>
#include <vector>

#include "bench/data_path/stage/used_stage.h"
#include "stage/recorder/recorder.h"

namespace vpfs {
namespace {

constexpr std::size_t kFlows = 1000;
constexpr std::size_t kRequests = std::size_t{1} << 20;  // 64 MiB, more than caches keep

// One request of each virtual PFS, all queued at once and then served.
class Batch {
 public:
  Batch() : stage_(config(), now_) {
    for (std::size_t i = 0; i < kFlows; ++i) {
      stage::Held& io = requests_.emplace_back();
      io.set_place(stage_.find(
          {.virtual_pfs = "job-" + std::to_string(i), .declared_name = "job-{jobid}"}, now_));
      io.size = io.asked = {4 * kKiB};
      io.cost = io.size.count;
    }
  }

  // Nanoseconds for each request.
  double run(stage::Recorder* recorder) {
    stage_.record(recorder);
    const Watch::time_point begin = Watch::now();
    for (stage::Held& io : requests_) {
      io.arrival = now_;
      if (recorder != nullptr) io.source = {.recording = recorder->settings().number, .origin = 1};
      stage_.arrive(io, now_);
    }
    for (std::size_t done = 0; done < kFlows;) {
      let_go_.clear();
      now_ += std::chrono::microseconds(1);
      (void)stage_.release(now_, let_go_);
      for (stage::Held* io : let_go_) {
        stage::Stage::took_over(*io);
        stage_.end(*io, {.moved = io->size}, now_);
        ++done;
      }
    }
    return nanoseconds(Watch::now() - begin) / kFlows;
  }

 private:
  static stage::Config config() {
    stage::Config made;
    made.virtual_pfs = {{.name = "job-{jobid}", .share = {}}};
    made.most_virtual_pfs = kFlows;
    return made;
  }

  TimePoint now_ = TimePoint(std::chrono::seconds(1));
  stage::Stage stage_;
  std::deque<stage::Held> requests_;
  std::vector<stage::Held*> let_go_;
};

}  // namespace

RecordSample measure_record(std::uint32_t batches) {
  Batch batch;
  stage::Recorder recorder({.number = 1, .requests = kRequests});
  std::vector<double> off;
  std::vector<double> on;
  std::vector<double> more;
  for (std::uint32_t i = 0; i < std::max(batches / 10, 3U); ++i) {
    off.push_back(batch.run(nullptr));
    on.push_back(batch.run(&recorder));
    more.push_back(on.back() - off.back());
  }
  return {
      .ns_off = quantile(off, 0.5), .ns_on = quantile(on, 0.5), .ns_of_it = quantile(more, 0.5)};
}

}  // namespace vpfs
