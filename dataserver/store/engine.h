#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "dataserver/store/bstream_store.h"
#include "dataserver/store/key_value_store.h"
#include "dataserver/store/storage_directory.h"

namespace vpfs::dataserver {

enum class EngineKind { memory, directory };

struct EngineSettings {
  EngineKind kind = EngineKind::memory;
  Bytes capacity{4 * kGiB};
  // Only the directory engine uses these:
  std::string directory;  // of this server alone
  std::string owner;      // see StorageDirectory::open
  Bytes buffer_size{256 * kKiB};
};

// Where one server keeps its metadata and its data.
struct Engine {
  std::optional<StorageDirectory> directory;  // of the directory engine; locked while it lives
  std::unique_ptr<KeyValueStore> metadata;
  std::unique_ptr<BstreamStore> bstreams;
};

// Used on the strand of `context`.
[[nodiscard]] Result<Engine> open_engine(asio::io_context& context, const EngineSettings& settings);

}  // namespace vpfs::dataserver
