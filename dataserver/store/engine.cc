#include "dataserver/store/engine.h"

#include <utility>

#include "base/result.h"
#include "dataserver/store/directory_bstream_store.h"
#include "dataserver/store/lmdb_key_value_store.h"
#include "dataserver/store/memory_bstream_store.h"
#include "dataserver/store/memory_key_value_store.h"

namespace vpfs::dataserver {
namespace {

// LMDB reserves that much address space, and no more disk than it needs.
constexpr Bytes kMostMetadata{64 * kGiB};

Result<Engine> open_directory_engine(asio::io_context& context, const EngineSettings& settings) {
  auto directory = StorageDirectory::open(settings.directory, settings.owner);
  VPFS_TRY(directory);
  auto metadata = LmdbKeyValueStore::open(context, directory->metadata_path(), kMostMetadata);
  VPFS_TRY(metadata);
  auto bstreams = DirectoryBstreamStore::open(context, directory->data_path(), settings.capacity,
                                              settings.buffer_size);
  VPFS_TRY(bstreams);
  return Engine{.directory = std::move(*directory),
                .metadata = std::move(*metadata),
                .bstreams = std::move(*bstreams)};
}

}  // namespace

Result<Engine> open_engine(asio::io_context& context, const EngineSettings& settings) {
  if (settings.kind == EngineKind::directory) return open_directory_engine(context, settings);
  return Engine{.directory = std::nullopt,
                .metadata = std::make_unique<MemoryKeyValueStore>(),
                .bstreams = std::make_unique<MemoryBstreamStore>(settings.capacity)};
}

}  // namespace vpfs::dataserver
