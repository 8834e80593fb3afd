#include "dataserver/store/engine.h"

#include <utility>

#include "dataserver/store/directory_bstream_store.h"
#include "dataserver/store/lmdb_key_value_store.h"
#include "dataserver/store/memory_bstream_store.h"
#include "dataserver/store/memory_key_value_store.h"

namespace vpfs::dataserver {
namespace {

// LMDB reserves that much address space, and no more disk than it needs.
constexpr Bytes kMostMetadata{64 * kGiB};

Result<Engine> open_directory_engine(asio::io_context& context, const ServerConfig& config,
                                     std::uint32_t self) {
  auto directory = StorageDirectory::open(config, self);
  if (!directory) return std::unexpected(directory.error());
  auto metadata = LmdbKeyValueStore::open(context, directory->metadata_path(), kMostMetadata);
  if (!metadata) return std::unexpected(metadata.error());
  auto bstreams = DirectoryBstreamStore::open(context, directory->data_path(), config.capacity,
                                              config.flow_buffer_size);
  if (!bstreams) return std::unexpected(bstreams.error());
  return Engine{.directory = std::move(*directory),
                .metadata = std::move(*metadata),
                .bstreams = std::move(*bstreams)};
}

}  // namespace

Result<Engine> open_engine(asio::io_context& context, const ServerConfig& config,
                           std::uint32_t self) {
  if (config.engine == EngineKind::directory) return open_directory_engine(context, config, self);
  return Engine{.directory = std::nullopt,
                .metadata = std::make_unique<MemoryKeyValueStore>(),
                .bstreams = std::make_unique<MemoryBstreamStore>(config.capacity)};
}

}  // namespace vpfs::dataserver
