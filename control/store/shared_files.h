#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/store/file_calls.h"
#include "control/store/site_store.h"

namespace vpfs::control {

// The files of one directory, which other hosts read and write too. A file is opened for each use
// and closed after it: NFS shows what other hosts have written when a file is opened, and a file
// that was open when a server was restarted may stay unusable.
//
// Errors say whether the server may answer later (Why::unreachable), or has refused (Why::refused).
class SharedFiles {
 public:
  template <typename T>
  using Outcome = SiteStore::Outcome<T>;

  class File {
   public:
    File(int number, FileCalls& calls) : number_(number), calls_(&calls) {}
    ~File() {
      if (number_ >= 0) calls_->close(number_);
    }
    File(File&& other) noexcept : number_(std::exchange(other.number_, -1)), calls_(other.calls_) {}
    File& operator=(File&&) = delete;

    // False, with errno, on an error. After write() and sync() the bytes are on disk.
    [[nodiscard]] bool write(std::string_view bytes);
    [[nodiscard]] bool sync() { return calls_->fsync(number_) == 0; }
    [[nodiscard]] bool cut(std::uint64_t size);
    // False at its end too, without errno.
    [[nodiscard]] bool read(std::string& more);
    [[nodiscard]] std::optional<std::uint64_t> size() { return calls_->size_of(number_); }

   private:
    int number_;
    FileCalls* calls_;
  };

  // `calls` outlives it.
  SharedFiles(std::string directory, FileCalls& calls)
      : directory_(std::move(directory)), calls_(calls) {}

  // The directory itself if the name is empty.
  [[nodiscard]] std::string path_of(std::string_view name) const;

  // Nothing: there is no such file.
  [[nodiscard]] Outcome<std::optional<File>> open(const std::string& name, int flags);
  // Nothing: there is none. At most 1 GiB.
  [[nodiscard]] Outcome<std::optional<std::string>> read(const std::string& name);
  // Writes at the place that `flags` say, and syncs. False: there is no such file.
  [[nodiscard]] Outcome<bool> write(const std::string& name, int flags, std::string_view bytes);
  [[nodiscard]] Outcome<std::vector<std::string>> names();
  // Gives a file a second name. False: that name is taken. It does not sync the directory.
  [[nodiscard]] Outcome<bool> link(const std::string& from, const std::string& to);
  // It does not sync the directory.
  [[nodiscard]] Outcome<void> rename(const std::string& from, const std::string& to);
  [[nodiscard]] Outcome<void> sync_directory();
  // As far as it can.
  void remove(const std::string& name) { (void)calls_.unlink(path_of(name).c_str()); }

  // An error with errno.
  [[nodiscard]] std::unexpected<SiteStore::Failure> problem(std::string_view name,
                                                            std::string_view what) const;

 private:
  std::string directory_;
  FileCalls& calls_;
};

}  // namespace vpfs::control
