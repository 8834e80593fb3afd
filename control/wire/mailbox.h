#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "control/wire/control.pb.h"

namespace vpfs::control {

// Answers on their way from any thread to the port's.
class Mailbox {
 public:
  struct Letter {
    std::uint64_t connection = 0;
    std::uint64_t ticket = 0;
    Envelope answer;
    std::string peer = {};  // that it was counted for; "": for none
  };

  // `wake` makes the port's thread call take(). It runs on the thread that posts, and never after
  // close().
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Drops the letter if the mailbox is closed.
  void post(Letter letter) {
    const std::lock_guard lock(mutex_);
    if (!wake_) return;
    letters_.push_back(std::move(letter));
    if (letters_.size() == 1) wake_();
  }

  [[nodiscard]] std::vector<Letter> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(letters_, {});
  }

  void close() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<Letter> letters_;
};

}  // namespace vpfs::control
