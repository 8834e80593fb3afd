#include "dataserver/beegfs/storage_context.h"

#include <algorithm>
#include <tuple>

namespace vpfs::dataserver {

StorageTarget::StorageTarget(asio::io_context& loop, const StorageSettings& settings,
                             BstreamId& next_bstream)
    : workers_(loop.get_executor(), settings.workers), next_bstream_(next_bstream) {
  if (settings.device) device_.emplace(*settings.device);
}

BstreamId StorageTarget::chunk_file(std::string_view entry) {
  const auto found = entries_.find(entry);
  if (found != entries_.end()) return found->second;
  return entries_.emplace(entry, next_bstream_++).first->second;
}

StorageTarget::Handle& StorageTarget::handle(std::string_view text) {
  const auto found = handles_.find(text);
  if (found != handles_.end()) return found->second;
  const std::string_view entry = text.substr(text.find('#') + 1);
  Handle fresh;
  fresh.bstream = chunk_file(entry);
  return handles_.emplace(text, fresh).first->second;
}

void StorageTarget::forget_handle(std::string_view text) {
  const auto found = handles_.find(text);
  if (found != handles_.end()) handles_.erase(found);
}

StorageContext::StorageContext(asio::io_context& event_loop, const StorageSettings& chosen,
                               const Clock& time_source)
    : loop(event_loop),
      settings(chosen),
      clock(time_source),
      store(chosen.capacity),
      listener_free(event_loop.get_executor()),
      other_workers_(event_loop.get_executor(), chosen.workers) {
  for (const std::uint16_t id : settings.targets) {
    targets_.emplace(std::piecewise_construct, std::forward_as_tuple(id),
                     std::forward_as_tuple(event_loop, chosen, next_bstream_));
  }
}

StorageTarget* StorageContext::find_target(std::uint16_t id) {
  const auto found = targets_.find(id);
  return found == targets_.end() ? nullptr : &found->second;
}

net::Permits& StorageContext::workers(std::uint16_t target) {
  StorageTarget* const found = find_target(target);
  return found == nullptr ? other_workers_ : found->workers();
}

std::optional<StorageFault> StorageContext::take_fault(beegfs::MessageType type) {
  const auto fits = [type](const StorageFault& fault) { return fault.type == type; };
  const auto found = std::ranges::find_if(faults, fits);
  if (found == faults.end()) return std::nullopt;
  StorageFault fault = *found;
  if (--found->times == 0) {
    faults.erase(found);
    --record.faults_left;
  }
  return fault;
}

void StorageContext::stop() {
  stopped = true;
  for (auto& [id, target] : targets_) target.workers().close();
  other_workers_.close();
  listener_free.notify_all();
}

}  // namespace vpfs::dataserver
