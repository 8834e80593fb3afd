#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/saved/saved_state.h"
#include "fuse/posix/io_request.h"
#include "net/descriptor.h"

namespace vpfs::fuse {

// The data of writes that wait, on their way to another process: a file in memory.
class SavedData {
 public:
  // One that another process has filled, or none yet.
  explicit SavedData(net::Descriptor file = {}) : file_(std::move(file)) {}

  // Forgets what is in it, and begins with another number.
  void clear();
  // Copies the data of a request, if it keeps any in memory and they are not there yet.
  [[nodiscard]] Result<void> add(IoRequest& request);
  // The other way round. Null: the file has no such place.
  [[nodiscard]] std::unique_ptr<Buffer> buffer(std::uint64_t at, std::uint64_t size) const;

  // -1: nothing was added.
  [[nodiscard]] int descriptor() const { return file_.get(); }

 private:
  net::Descriptor file_;
  std::uint64_t number_ = 1;
  std::uint64_t size_ = 0;
};

// Appends what another process needs of a request that waits. `channel` is the number of its
// channel there. What it keeps in a pipe is appended to `pipes`.
[[nodiscard]] Result<void> save_request(IoRequest& request, std::size_t channel, SavedData& data,
                                        std::vector<int>& pipes, SavedState& to);
// The other way round. The error says what is missing.
struct RequestSource {
  std::span<const std::unique_ptr<Channel>> channels;
  const OpenFiles& files;
  const SavedData& data;
  std::span<net::Descriptor> pipes;
};
[[nodiscard]] Result<std::unique_ptr<IoRequest>> restore_request(const SavedState& from,
                                                                 const RequestSource& source);

}  // namespace vpfs::fuse
