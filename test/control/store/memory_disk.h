#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/store/file_calls.h"

namespace vpfs::control {

inline const std::string kJournalPath = "/d/rules.journal";  // on a MemoryDisk

// The power went off; thrown by calls of a MemoryDisk.
struct PowerCut {};

// A file system of one directory, "/d", that forgets what was not synced when the power goes off.
// Calls count from 1; any of them can fail or be the last.
class MemoryDisk final : public FileCalls {
 public:
  // The call fails. A write then stores `bytes` of it first.
  struct Fault {
    int error;
    std::size_t bytes = 0;
  };
  void fail_call(std::size_t call, Fault fault) { faults_[call] = fault; }
  void fail_all_from(std::size_t call, int error) { all_fail_ = {call, error}; }
  void stop_failing() {
    faults_.clear();
    cut_.reset();
    all_fail_.reset();
  }
  // The power goes off in this call; a write stores `bytes` first.
  void cut_power_at(std::size_t call, std::size_t bytes = 0) { cut_ = {call, bytes}; }
  [[nodiscard]] std::size_t calls() const { return calls_; }
  [[nodiscard]] std::size_t last_write_size() const { return last_write_size_; }

  // Power is back. What was not synced is there or not.
  void restart(bool keeps_bytes, bool keeps_names) {
    if (keeps_names) {
      synced_names_ = names_;
    } else {
      names_ = synced_names_;
    }
    for (const auto& [name, file] : names_) {
      (keeps_bytes ? file->synced : file->bytes) = keeps_bytes ? file->bytes : file->synced;
    }
    open_.clear();
    stop_failing();
  }

  [[nodiscard]] std::string bytes_of(const std::string& path) const {
    const auto found = names_.find(path);
    return found == names_.end() ? "" : found->second->bytes;
  }
  void put(const std::string& path, const std::string& bytes) {
    names_[path] = std::make_shared<File>(File{.bytes = bytes, .synced = bytes});
    synced_names_ = names_;
  }

  int open(const char* path, int flags, mode_t /*mode*/) override {
    if (fails()) return -1;
    if ((flags & O_DIRECTORY) != 0) return add({});
    auto found = names_.find(path);
    if (found == names_.end()) {
      if ((flags & O_CREAT) == 0) {
        errno = ENOENT;
        return -1;
      }
      found = names_.emplace(path, std::make_shared<File>()).first;
    }
    if ((flags & O_TRUNC) != 0) found->second->bytes.clear();
    return add({.file = found->second, .appends = (flags & O_APPEND) != 0});
  }
  mode_t mode_of(int /*file*/) override { return S_IFREG; }
  std::optional<std::uint64_t> size_of(int file) override {
    if (fails()) return std::nullopt;
    return open_.at(file).file->bytes.size();
  }
  ssize_t read(int file, void* to, std::size_t size) override {
    if (fails()) return -1;
    Open& open = open_.at(file);
    // Short, so that a reader has to ask again.
    const std::size_t count =
        std::min({size, open.file->bytes.size() - open.offset, std::size_t{1000}});
    std::memcpy(to, open.file->bytes.data() + open.offset, count);
    open.offset += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(int file, const void* from, std::size_t size) override {
    last_write_size_ = size;
    Open& open = open_.at(file);
    std::string& bytes = open.file->bytes;
    const auto store = [&](std::size_t count) {
      const std::string_view text(static_cast<const char*>(from), std::min(count, size));
      const std::size_t place = open.appends ? bytes.size() : open.offset;
      bytes.replace(place, std::min(text.size(), bytes.size() - place), text);
      open.offset = place + text.size();
    };
    if (cut_ && cut_->first == calls_ + 1) store(cut_->second);
    const auto fault = faults_.find(calls_ + 1);
    if (fault != faults_.end() && fault->second.bytes > 0) {
      // As a full disk does it: a short write now, the error with the next one.
      const std::size_t count = std::min(fault->second.bytes, size);
      store(count);
      const int error = fault->second.error;
      faults_.erase(fault);
      ++calls_;
      faults_[calls_ + 1] = {.error = error};
      return static_cast<ssize_t>(count);
    }
    if (fails()) return -1;
    store(size);
    return static_cast<ssize_t>(size);
  }
  bool has_name(int file, const char* path) override {
    const auto found = names_.find(path);
    return found != names_.end() && open_.at(file).file == found->second;
  }
  int fdatasync(int file) override {
    if (fails()) return -1;
    File& synced = *open_.at(file).file;
    synced.synced = synced.bytes;
    return 0;
  }
  int fsync(int file) override {
    if (fails()) return -1;
    Open& open = open_.at(file);
    if (open.file) {
      open.file->synced = open.file->bytes;
    } else {
      synced_names_ = names_;
    }
    return 0;
  }
  int ftruncate(int file, off_t size) override {
    if (fails()) return -1;
    open_.at(file).file->bytes.resize(static_cast<std::size_t>(size));
    return 0;
  }
  int rename(const char* from, const char* to) override {
    if (fails()) return -1;
    names_[to] = std::exchange(names_[from], nullptr);
    names_.erase(from);
    return 0;
  }
  int link(const char* from, const char* to) override {
    if (fails()) return -1;
    const auto found = names_.find(from);
    errno = found == names_.end() ? ENOENT : EEXIST;
    return found != names_.end() && names_.emplace(to, found->second).second ? 0 : -1;
  }
  std::optional<std::vector<std::string>> names_in(const char* directory) override {
    if (fails()) return std::nullopt;
    const std::string start = std::string(directory) + "/";
    std::vector<std::string> names;
    for (const auto& [path, file] : names_) {
      if (path.starts_with(start)) names.push_back(path.substr(start.size()));
    }
    return names;
  }
  int unlink(const char* path) override {
    if (fails()) return -1;
    names_.erase(path);
    return 0;
  }
  int flock(int /*file*/, int /*operation*/) override { return fails() ? -1 : 0; }
  void close(int file) override { open_.erase(file); }

 private:
  struct File {
    std::string bytes;
    std::string synced;
  };
  struct Open {
    std::shared_ptr<File> file;  // null: the directory
    std::size_t offset = 0;
    bool appends = false;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;  // shared with whoever has it open

  bool fails() {
    ++calls_;
    if (cut_ && calls_ >= cut_->first) throw PowerCut();
    if (const auto fault = faults_.find(calls_); fault != faults_.end()) {
      errno = fault->second.error;
      return true;
    }
    if (all_fail_ && calls_ >= all_fail_->first) {
      errno = all_fail_->second;
      return true;
    }
    return false;
  }
  int add(Open open) {
    const int file = next_++;
    open_.emplace(file, std::move(open));
    return file;
  }

  Names names_;
  Names synced_names_;
  std::map<int, Open> open_;
  std::map<std::size_t, Fault> faults_;
  std::optional<std::pair<std::size_t, int>> all_fail_;
  std::optional<std::pair<std::size_t, std::size_t>> cut_;
  std::size_t calls_ = 0;
  std::size_t last_write_size_ = 0;
  int next_ = 3;
};

}  // namespace vpfs::control
