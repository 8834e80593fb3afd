#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "dataserver/orangefs/server_config.h"
#include "dataserver/store/bstream_store.h"
#include "dataserver/store/key_value_store.h"
#include "dataserver/store/storage_directory.h"

namespace vpfs::dataserver {

// Where one server keeps its metadata and its data.
struct Engine {
  std::optional<StorageDirectory> directory;  // of the directory engine; locked as long as it is
  std::unique_ptr<KeyValueStore> metadata;
  std::unique_ptr<BstreamStore> bstreams;
};

// The engine that the configuration names, for the server `self`. Used on the strand of `context`.
[[nodiscard]] Result<Engine> open_engine(asio::io_context& context, const ServerConfig& config,
                                         std::uint32_t self);

}  // namespace vpfs::dataserver
