#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "control/store/file_calls.h"
#include "control/store/state_store.h"

namespace vpfs::control {

// A StateStore in one local file (journal_lines.h has its format). FILE.lock beside it keeps others
// out for as long as the journal is open; replace() writes FILE.new and renames it.
//
// An append() that fails leaves nothing behind. Where that cannot be made sure at once, the next
// append() tries it again first, and is refused if it cannot either.
//
// The first record comes by a rename, so that a power cut leaves an empty file or a whole line:
// load() takes a file that has bytes, but no whole line, for a damaged one.
class Journal final : public StateStore {
 public:
  // Makes the file if it is not there. `calls` outlives the journal. The error code is
  // device_or_resource_busy if another journal has the file. Any other kind of file (a FIFO, a
  // device) is an error; nothing waits.
  [[nodiscard]] static Result<std::unique_ptr<Journal>> open(const std::string& path,
                                                             FileCalls& calls);
  ~Journal() override;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] Result<Loaded> load() override;
  [[nodiscard]] Result<void> append(std::string_view record) override;
  [[nodiscard]] Result<void> replace(std::string_view record) override;
  [[nodiscard]] bool is_in_place() const override;
  [[nodiscard]] bool wants_replacing() const override;

 private:
  Journal(std::string path, FileCalls& calls) : path_(std::move(path)), calls_(calls) {}

  [[nodiscard]] Result<void> lock();
  [[nodiscard]] Result<void> open_file();
  // Opens a regular file. `what` it is is told in the error.
  [[nodiscard]] Result<int> open_regular(const std::string& path, int flags, std::string_view what);
  [[nodiscard]] Result<std::string> read_all();
  [[nodiscard]] Result<void> append_first(std::string_view record);
  [[nodiscard]] Result<void> append_line(const std::string& line);
  [[nodiscard]] bool write_all(int file, std::string_view bytes);
  [[nodiscard]] bool sync_directory();
  [[nodiscard]] bool cut_to_sound_size();
  [[nodiscard]] std::unexpected<Error> problem(std::string_view what) const;  // with errno

  std::string path_;
  FileCalls& calls_;
  int lock_ = -1;
  int file_ = -1;
  std::uint64_t sound_size_ = 0;         // of the whole records
  std::uint64_t first_record_size_ = 0;  // what replace() left, or what the file began with
  bool has_more_ = false;                // the file may have bytes behind the whole records
  bool renamed_ = false;                 // and it is not sure that the directory has it on disk
};

}  // namespace vpfs::control
