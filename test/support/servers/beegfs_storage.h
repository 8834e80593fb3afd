#pragma once

#include <functional>
#include <thread>

#include "base/system_clock.h"
#include "dataserver/beegfs/storage.h"

namespace vpfs::test {

using dataserver::SeenConnection;
using dataserver::SeenRequest;
using dataserver::StorageFault;
using dataserver::StorageRecord;
using dataserver::StorageSettings;

// A storage server within the test's process. The test can wait for what it has seen.
class BeegfsStorage : public dataserver::BeegfsStorage {
 public:
  using dataserver::BeegfsStorage::BeegfsStorage;

  using Condition = std::function<bool(const StorageRecord& record)>;
  // Polls record() until `condition` holds; false when time runs out.
  [[nodiscard]] bool wait_until(const Condition& condition,
                                Duration patience = std::chrono::seconds(20)) {
    const SystemClock clock;
    const TimePoint deadline = clock.now() + patience;
    while (!condition(record())) {
      if (clock.now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
};

}  // namespace vpfs::test
