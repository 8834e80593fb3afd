#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "control/store/shared_files.h"
#include "control/store/state_store.h"

namespace vpfs::control {

// A file of records that one host writes and others may read, in the format of a journal
// (journal_lines.h). It is whole before it has its name. So a file that has bytes, but no whole
// line, is damaged.
class RecordFile {
 public:
  template <typename T>
  using Outcome = SiteStore::Outcome<T>;

  RecordFile(SharedFiles& files, std::string name) : files_(files), name_(std::move(name)) {}

  // The records of a file that another host may still be writing. Its bytes are `bytes`, its path
  // `path`.
  [[nodiscard]] static Outcome<StateStore::Loaded> parse(const std::string& bytes,
                                                         const std::string& path);

  // Makes the file, or a new one in its place. NAME.new is its draft.
  [[nodiscard]] Outcome<void> put(const StateStore::Loaded& records);
  [[nodiscard]] Outcome<void> put(std::string_view record);
  // After put(). Where a part of the record may have been written and cannot be taken away again,
  // the error is Why::unreachable, and the next append() takes it away first. One that finds the
  // file changed or gone is refused; put() may succeed then.
  [[nodiscard]] Outcome<void> append(std::string_view record);
  // Whether it has grown to many times what it began with.
  [[nodiscard]] bool has_grown() const;

 private:
  [[nodiscard]] Outcome<void> append_first(std::string_view record);
  [[nodiscard]] Outcome<void> put_lines(const std::string& lines, std::uint64_t first);

  SharedFiles& files_;
  std::string name_;
  std::uint64_t sound_size_ = 0;  // of the whole records
  std::uint64_t first_size_ = 0;  // of the first one
  bool has_more_ = false;         // the file may have bytes behind the whole records
};

}  // namespace vpfs::control
