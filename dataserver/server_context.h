#pragma once

#include <cstdint>
#include <string>

#include "dataserver/bstream_store.h"
#include "dataserver/device_queue.h"
#include "dataserver/handle_ranges.h"
#include "dataserver/metadata.h"
#include "dataserver/peers.h"
#include "dataserver/server_config.h"

namespace vpfs::dataserver {

// What the operations of one server work on. All of it outlives every connection.
struct ServerContext {
  asio::io_context& io;
  const ServerConfig& config;
  std::uint32_t self;
  const std::string& config_text;
  const HandleRanges& ranges;
  Metadata& metadata;
  BstreamStore& bstreams;
  Peers& peers;
  DeviceQueue& device;
};

}  // namespace vpfs::dataserver
