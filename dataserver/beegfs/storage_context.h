#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/device_model.h"
#include "dataserver/beegfs/storage_settings.h"
#include "dataserver/store/memory_bstream_store.h"
#include "net/permits.h"
#include "net/signal.h"

namespace vpfs::dataserver {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

// A target of a storage server: its chunk files, its workers, its device.
class StorageTarget {
 public:
  // An open chunk file.
  struct Handle {
    BstreamId bstream = 0;
    std::int64_t next_offset = 0;   // of a read in sequence
    std::uint64_t in_sequence = 0;  // bytes
  };

  // Numbers of chunk files come from `next_bstream`, which all targets share.
  StorageTarget(asio::io_context& loop, const StorageSettings& settings, BstreamId& next_bstream);

  [[nodiscard]] net::Permits& workers() { return workers_; }
  [[nodiscard]] std::optional<DeviceModel>& device() { return device_; }

  // "<session>#<entry>".
  [[nodiscard]] Handle& handle(std::string_view text);
  void forget_handle(std::string_view text);
  // The chunk file of an entry id; created on first use.
  [[nodiscard]] BstreamId chunk_file(std::string_view entry);

 private:
  net::Permits workers_;
  std::optional<DeviceModel> device_;
  BstreamId& next_bstream_;
  TextMap<BstreamId> entries_;
  TextMap<Handle> handles_;
};

// What the sessions of a storage server share. Belongs to one strand.
class StorageContext {
 public:
  StorageContext(asio::io_context& event_loop, const StorageSettings& chosen,
                 const Clock& time_source);

  [[nodiscard]] StorageTarget* find_target(std::uint16_t id);
  // The workers for requests with that target in the header.
  [[nodiscard]] net::Permits& workers(std::uint16_t target);
  // Takes the fault that the next request of that type meets.
  [[nodiscard]] std::optional<StorageFault> take_fault(beegfs::MessageType type);
  // Wakes and ends all waiters.
  void stop();

  asio::io_context& loop;
  const StorageSettings& settings;
  const Clock& clock;
  MemoryBstreamStore store;
  std::deque<StorageFault> faults;
  StorageRecord record;
  bool stopped = false;

  // One thread reads all headers. While it waits for the rest of one, it reads no others.
  bool listener_waits = false;
  net::Signal listener_free;

 private:
  BstreamId next_bstream_ = 1;
  std::map<std::uint16_t, StorageTarget> targets_;
  net::Permits other_workers_;
};

}  // namespace vpfs::dataserver
