#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/beegfs/storage_address.h"
#include "client/beegfs/storage_client.h"
#include "tools/load/mount.h"

namespace vpfs::load {

// A BeeGFS client, as one node has it for all its applications. Files are striped over the targets
// of one storage server that the address names. I/O carries the uid of the application, and its
// jobid as the directory of the file.
class BeegfsMount final : public Mount {
 public:
  BeegfsMount(const client::StorageAddress& address, const LoadSettings& settings,
              std::uint64_t connections, std::uint32_t node, const Clock& clock)
      : address_(address),
        settings_(settings),
        connections_(connections),
        node_(node),
        clock_(clock) {}

  net::Task<Result<void>> connect() override;
  net::Task<Result<std::unique_ptr<RemoteFile>>> make_file(
      std::string name, std::uint64_t number, const ApplicationSettings& application) override;
  void close() override;

 private:
  const client::StorageAddress& address_;
  const LoadSettings& settings_;
  std::uint64_t connections_;
  std::uint32_t node_;
  const Clock& clock_;
  std::unique_ptr<client::StorageClient> client_;
  std::uint64_t sessions_ = 0;
};

}  // namespace vpfs::load
