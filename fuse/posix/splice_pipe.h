#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fuse/channel.h"
#include "net/descriptor.h"

namespace vpfs::fuse {

// Answers reads with the pages that the file system below has in its cache, which spares a copy of
// the data. Each thread has its own.
class SplicePipe {
 public:
  // Smaller reads cost less when they are copied.
  static constexpr std::size_t kLeast = std::size_t{128} << 10;

  // Whether the pipe of a thread can hold an answer of that many bytes. Tries it once.
  [[nodiscard]] static bool has_room_for(std::size_t size);

  // Answers message `unique` with the data at `offset` of the file. True: it has its answer, of
  // `into.size()` bytes. False: it has none, and the first `moved` bytes are in `into`: the file
  // has no more, or gives it in another way only.
  [[nodiscard]] bool answer(Channel& channel, std::uint64_t unique, int file, std::uint64_t offset,
                            std::span<std::byte> into, std::uint64_t& moved);

 private:
  [[nodiscard]] bool open();
  void close();
  // Takes out what the pipe holds: an answer's head and `data.size()` bytes. False: it does not.
  [[nodiscard]] bool drain(std::span<std::byte> data);

  net::Descriptor out_, in_;
  std::size_t room_ = 0;  // bytes of whole pages
  bool refused_ = false;
};

}  // namespace vpfs::fuse
