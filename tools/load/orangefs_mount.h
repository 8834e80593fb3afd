#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/orangefs/calls/mount_address.h"
#include "client/orangefs/file_system.h"
#include "tools/load/mount.h"

namespace vpfs::load {

// A file system of the OrangeFS protocol. Its I/O carries the application's jobid.
class OrangefsMount final : public Mount {
 public:
  OrangefsMount(const client::MountAddress& address, const LoadSettings& settings,
                const ApplicationSettings& application, const Clock& clock)
      : address_(address), settings_(settings), application_(application), clock_(clock) {}

  net::Task<Result<void>> connect() override;
  net::Task<Result<std::unique_ptr<RemoteFile>>> make_file(
      std::string name, std::uint64_t number, const ApplicationSettings& application) override;
  void close() override;

 private:
  // The servers of a process's files; none: those that the file system chooses.
  [[nodiscard]] Result<std::vector<std::size_t>> servers_of(
      std::uint64_t number, const ApplicationSettings& application) const;
  [[nodiscard]] net::Task<Result<orangefs::Handle>> directory();
  // Fails if another load that may be running has this file.
  [[nodiscard]] net::Task<Result<void>> check_unused(orangefs::Handle parent,
                                                     const std::string& name);

  const client::MountAddress& address_;
  const LoadSettings& settings_;
  const ApplicationSettings& application_;
  const Clock& clock_;
  std::unique_ptr<client::FileSystem> file_system_;
};

}  // namespace vpfs::load
