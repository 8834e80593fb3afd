#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <gtest/gtest.h>

#include "protocols/protocol.h"
#include "test/support/captured_streams.h"

namespace vpfs::test {

// Feeds one side of a captured connection to a conversation, as its bytes arrived. Held requests
// are released at once.
class Replay {
 public:
  Replay(Conversation& conversation, const CapturedStream& stream)
      : conversation_(conversation), stream_(stream) {}

  // `size` more bytes arrive. The conversation sees at most `window` of them at a time.
  void arrive(std::size_t size, std::size_t window) {
    available_ += size;
    while (at_ < available_) {
      const std::span<const std::byte> here =
          std::span(stream_.bytes).subspan(at_, std::min(window, available_ - at_));
      const Step step = conversation_.next(stream_.from, here);
      ASSERT_NE(step.action, Step::Action::lost_framing) << conversation_.problem();
      if (step.action == Step::Action::wait) return;
      if (step.action == Step::Action::need_more) {
        ASSERT_GT(step.size, here.size());
        if (here.size() == available_ - at_) return;
        window = static_cast<std::size_t>(step.size);
        continue;
      }
      ASSERT_GT(step.size, 0U);
      if (step.action == Step::Action::hold) {
        ++held_;
        conversation_.released(conversation_.held().key);
      }
      if (step.finished) {
        ++finished_;
        failed_ += step.finished->failed ? 1 : 0;
      }
      at_ += static_cast<std::size_t>(step.size);
    }
  }

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] int held() const { return held_; }
  [[nodiscard]] int finished() const { return finished_; }
  [[nodiscard]] int failed() const { return failed_; }

 private:
  Conversation& conversation_;
  const CapturedStream& stream_;
  std::size_t available_ = 0;
  std::size_t at_ = 0;  // may be beyond available_: payload is skipped unseen
  int held_ = 0;
  int finished_ = 0;
  int failed_ = 0;
};

}  // namespace vpfs::test
