#pragma once

namespace vpfs::fuse {

// Answers of this thread, while it lives, open a file for direct I/O in which processes may write
// at the same time. Otherwise the kernel lets one of them write after the other, so that several on
// one file cannot keep a queue. libfuse 3.14 cannot say it: set fuse_file_info::direct_io beside.
class ParallelWrites {
 public:
  explicit ParallelWrites(bool wanted);
  ~ParallelWrites();
  ParallelWrites(const ParallelWrites&) = delete;
  ParallelWrites& operator=(const ParallelWrites&) = delete;

  // Whether the calling thread has one that is wanted.
  [[nodiscard]] static bool are_wanted();
};

}  // namespace vpfs::fuse
