#pragma once

#include <cstdint>
#include <string>

#include "dataserver/orangefs/datafiles.h"
#include "dataserver/orangefs/handle_ranges.h"
#include "dataserver/orangefs/metadata.h"
#include "dataserver/orangefs/peers.h"
#include "dataserver/orangefs/server_config.h"
#include "dataserver/store/bstream_store.h"
#include "dataserver/store/device_queue.h"

namespace vpfs::dataserver {

// The parts of one server that its operations use. All of them outlive every connection.
struct ServerContext {
  asio::io_context& io;
  const ServerConfig& config;
  std::uint32_t self;
  const std::string& config_text;
  const HandleRanges& ranges;
  Metadata& metadata;
  BstreamStore& bstreams;
  Datafiles& datafiles;
  Peers& peers;
  DeviceQueue& device;
};

}  // namespace vpfs::dataserver
