#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "dataserver/store/bstream_store.h"
#include "dataserver/store/io_ring.h"

namespace vpfs::dataserver {

// One file per bstream, read and written through io_uring by way of the page cache:
// <directory>/<last two hex digits of the id>/<id in hex>.
//
// The capacity counts the lengths of the files. Buffers are as large as one data message and are
// reused; the connections bound how many are in use.
class DirectoryBstreamStore final : public BstreamStore {
 public:
  // `directory` exists, and no other program changes it.
  [[nodiscard]] static Result<std::unique_ptr<DirectoryBstreamStore>> open(
      asio::io_context& context, const std::string& directory, Bytes capacity, Bytes buffer_size);
  ~DirectoryBstreamStore() override;

  Outcome<std::int64_t> size(BstreamId id) override;
  net::Task<Outcome<std::vector<Part>>> read(BstreamId id, std::int64_t offset,
                                             std::size_t size) override;
  net::Task<Outcome<Window>> open_window(BstreamId id, std::int64_t offset,
                                         std::size_t size) override;
  net::Task<Outcome<void>> commit(Window window) override;
  void abandon(Window window) override;
  std::size_t most_window() const override { return buffer_size_; }
  Outcome<void> truncate(BstreamId id, std::int64_t size) override;
  Outcome<void> remove(BstreamId id) override;
  net::Task<Outcome<void>> flush(BstreamId id) override;
  Space space() override;
  bool immediate() const override { return false; }

 private:
  class BufferStock;
  // An open file; closed with its last user.
  struct File {
    File(int opened, std::int64_t length) : descriptor(opened), size(length) {}
    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    int descriptor;
    std::int64_t size;
    std::uint64_t truncations = 0;
    bool removed = false;
  };
  using FilePtr = std::shared_ptr<File>;  // shared with the operations that use it
  struct Cached {
    FilePtr file;
    std::list<BstreamId>::iterator place;
  };

  DirectoryBstreamStore(std::string directory, Bytes capacity, Bytes buffer_size,
                        std::unique_ptr<IoRing> ring);
  [[nodiscard]] Result<void> take_stock();
  [[nodiscard]] std::string directory_of(BstreamId id) const;
  [[nodiscard]] std::string path_of(BstreamId id) const;
  // Null when there is no such file and `make` is false.
  [[nodiscard]] Outcome<FilePtr> file(BstreamId id, bool make);
  [[nodiscard]] int create(BstreamId id);
  void remember(BstreamId id, const FilePtr& file);
  // The length of the file has changed to `size`.
  void resized(File& file, std::int64_t size);

  std::string directory_;
  Bytes capacity_;
  std::size_t buffer_size_;
  std::uint64_t used_ = 0;
  std::unique_ptr<IoRing> ring_;
  std::shared_ptr<BufferStock> stock_;  // shared with the buffers that are out
  // Files whose names may not be durable yet. When these are too many to remember, all count.
  std::unordered_set<BstreamId> fresh_;
  bool all_fresh_ = false;
  std::list<BstreamId> recent_;  // of the cached files, the latest used first
  std::unordered_map<BstreamId, Cached> files_;
};

}  // namespace vpfs::dataserver
