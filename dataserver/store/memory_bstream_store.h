#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "dataserver/store/bstream_store.h"

namespace vpfs::dataserver {

// Bstreams in chunks of 256 KiB. Sockets read into chunks and write from them without a copy
// between: reads hand out parts of the chunks themselves, so a write that overlaps a read which
// is still being sent may show in it, as two such operations at once are in no order.
//
// A chunk's memory comes from the kernel page by page as it is first written; the capacity counts
// chunks up to the last page that was ever opened for writing.
class MemoryBstreamStore final : public BstreamStore {
 public:
  static constexpr std::size_t kChunkSize = 256 * kKiB;

  explicit MemoryBstreamStore(Bytes capacity) : capacity_(capacity) {}

  Outcome<std::int64_t> size(BstreamId id) override;
  net::Task<Outcome<std::vector<Part>>> read(BstreamId id, std::int64_t offset,
                                             std::size_t size) override;
  net::Task<Outcome<Window>> open_window(BstreamId id, std::int64_t offset,
                                         std::size_t size) override;
  net::Task<Outcome<void>> commit(Window window) override;
  void abandon(Window window) override;
  std::size_t most_window() const override { return 16 * kMiB; }
  Outcome<void> truncate(BstreamId id, std::int64_t size) override;
  Outcome<void> remove(BstreamId id) override;
  net::Task<Outcome<void>> flush(BstreamId id) override;
  Space space() override;
  bool immediate() const override { return true; }

 private:
  class Chunk;
  struct Bstream {
    std::int64_t size = 0;
    std::map<std::uint64_t, std::shared_ptr<Chunk>> chunks;  // by offset / kChunkSize
  };

  void drop_chunks(Bstream& bstream, std::uint64_t first_index);

  Bytes capacity_;
  Bytes used_;
  std::unordered_map<BstreamId, Bstream> bstreams_;
};

}  // namespace vpfs::dataserver
