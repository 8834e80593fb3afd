#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "net/async.h"
#include "net/output_queue.h"
#include "tools/load/settings.h"

namespace vpfs::load {

// An open file, whatever it is on. Any number of operations may be under way at once; memory and
// files given to one are borrowed until its coroutine returns.
class RemoteFile {
 public:
  virtual ~RemoteFile() = default;

  // Each returns the number of bytes up to the end of the file; the second drops them.
  [[nodiscard]] virtual net::Task<Result<std::uint64_t>> read(std::uint64_t offset,
                                                              std::span<std::byte> into) = 0;
  [[nodiscard]] virtual net::Task<Result<std::uint64_t>> discard(std::uint64_t offset,
                                                                 std::uint64_t size) = 0;
  // Each writes everything or fails.
  [[nodiscard]] virtual net::Task<Result<void>> write(std::uint64_t offset,
                                                      std::span<const std::byte> from) = 0;
  [[nodiscard]] virtual net::Task<Result<void>> write(std::uint64_t offset,
                                                      net::OutputQueue::FilePart from) = 0;
  // The file cannot be used afterwards.
  [[nodiscard]] virtual net::Task<Result<void>> remove() = 0;
};

// A client of a file system, with connections of its own. Outlives its files. Belongs to the strand
// of one event loop.
class Mount {
 public:
  virtual ~Mount() = default;

  // Every user of the mount awaits this first.
  [[nodiscard]] virtual net::Task<Result<void>> connect() = 0;
  // Creates an empty file of the application's process with that number, replacing an existing one.
  [[nodiscard]] virtual net::Task<Result<std::unique_ptr<RemoteFile>>> make_file(
      std::string name, std::uint64_t number, const ApplicationSettings& application) = 0;
  // Ends all operations under way.
  virtual void close() = 0;
};

// A mount for `application`, and for others of the same node. `node` is its number among all
// mounts. The references outlive it.
[[nodiscard]] std::unique_ptr<Mount> make_mount(const LoadSettings& settings,
                                                const ApplicationSettings& application,
                                                std::uint32_t node, const Clock& clock);

}  // namespace vpfs::load
