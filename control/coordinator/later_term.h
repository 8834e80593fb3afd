#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"

namespace vpfs::coordinator {

// An aggregator that is put between a site's stages and those that led them finds stages that have
// applied cycles of its own term or a later one. It begins a later term then: what leads it has
// terms of its own. Belongs to one thread.
class LaterTerm {
 public:
  // `begin` gets the least term that is needed, once, after `pause`: other stages may need a later
  // one. Null: this coordinator may not begin one by itself.
  using Begin = std::function<void(std::uint64_t least)>;
  LaterTerm(asio::io_context& context, Duration pause, Begin begin)
      : timer_(context), pause_(pause), begin_(std::move(begin)) {}

  [[nodiscard]] bool may_begin() const { return begin_ != nullptr; }
  // A stage has applied cycles of that term, and they were not this coordinator's. REQUIRES:
  // may_begin().
  void need_above(std::uint64_t term, const std::string& stage);
  void stop() { timer_.cancel(); }

 private:
  asio::steady_timer timer_;
  const Duration pause_;
  const Begin begin_;
  std::uint64_t least_ = 0;  // zero: none is needed yet
};

}  // namespace vpfs::coordinator
