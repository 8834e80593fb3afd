#pragma once

#include <functional>
#include <string>

#include "control/metrics/http_answers.h"
#include "control/wire/owner.h"

namespace vpfs::control {

// What a process has beside a leader or a standby: its part of the stages, as a member. It has a
// thread of its own, and its functions are for any thread.
class OwnPart {
 public:
  using MakeText = HttpSource::MakeText;

  virtual ~OwnPart() = default;
  // Answers a request for the status: with `status`, a JSON object, and what this part adds.
  virtual void answer_status(std::string status, Answer answer) = 0;
  // Calls `give` once, with what makes the metrics of `others` and of this part.
  virtual void give_metrics(MakeText others, std::function<void(MakeText)> give) = 0;
  // Whether its thread has turned since the last call.
  [[nodiscard]] virtual bool has_turned() = 0;
};

// Whether what a process has beside a leader or a standby turns; null: it has nothing.
[[nodiscard]] inline std::function<bool()> turns_of(OwnPart* part) {
  return [part] { return part == nullptr || part->has_turned(); };
}

}  // namespace vpfs::control
