#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "tools/vpfsctl/top/top_table.h"

namespace vpfs::ctl {

// The terminal as a screen, until the object ends.
class TopScreen {
 public:
  // Null if this is not a terminal that can be one.
  [[nodiscard]] static std::unique_ptr<TopScreen> open();
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] std::size_t height() const;
  void draw(const TopPage& page);
  // A key; nothing if none is pressed within `patience`, or the size has changed.
  [[nodiscard]] std::optional<int> key(std::chrono::milliseconds patience);

 private:
  struct State;
  explicit TopScreen(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vpfs::ctl
