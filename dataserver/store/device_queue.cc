#include "dataserver/store/device_queue.h"

#include <asio/steady_timer.hpp>

namespace vpfs::dataserver {

DeviceQueue::DeviceQueue(asio::io_context& context, const Clock& clock,
                         const std::optional<DeviceSettings>& settings)
    : context_(context), clock_(clock) {
  if (settings) model_.emplace(*settings);
}

net::Task<void> DeviceQueue::pass(Bytes size, bool fixed_time) {
  if (!model_) co_return;
  asio::steady_timer timer(context_, model_->finish(clock_.now(), size, fixed_time));
  co_await timer.async_wait(net::kUseTask);
}

}  // namespace vpfs::dataserver
