#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/orangefs/caller_session.h"
#include "client/orangefs/calls/request_template.h"
#include "client/orangefs/io_part.h"
#include "client/orangefs/stat.h"
#include "net/async.h"
#include "net/output_queue.h"
#include "protocols/orangefs/basic_types.h"

namespace vpfs::client {

// An open file. Any number of reads and writes may be under way at once, from one strand.
//
// It belongs to the caller that opened it: its requests show that caller, whichever caller asks for
// them. Memory and files given to an operation are borrowed until its coroutine returns. The file
// must outlive its operations; it keeps its session.
class File {
 public:
  // With `right` its requests show that capability, however the file's mode has changed since a
  // server gave it: the creator of a file may write it even if its mode forbids that.
  [[nodiscard]] static net::Task<Result<std::unique_ptr<File>>> open(
      std::shared_ptr<Session> session, CallerPtr caller, orangefs::Handle handle,
      std::optional<orangefs::Capability> right = std::nullopt);

  // Each returns how many bytes it read; fewer than asked for means the end of the file. Holes read
  // as zeros.
  [[nodiscard]] net::Task<Result<std::uint64_t>> read(std::uint64_t offset,
                                                      std::span<std::byte> into);
  // Reads and drops the data, without copying them to user space.
  [[nodiscard]] net::Task<Result<std::uint64_t>> discard(std::uint64_t offset, std::uint64_t size);

  // Each writes everything or fails.
  [[nodiscard]] net::Task<Result<void>> write(std::uint64_t offset,
                                              std::span<const std::byte> from);
  // The kernel sends the bytes of a local file.
  [[nodiscard]] net::Task<Result<void>> write(std::uint64_t offset,
                                              net::OutputQueue::FilePart from);

  [[nodiscard]] net::Task<Result<std::uint64_t>> size();
  [[nodiscard]] net::Task<Result<void>> truncate(std::uint64_t size);
  [[nodiscard]] net::Task<Result<void>> flush();
  [[nodiscard]] orangefs::Handle handle() const { return handle_; }
  // The attributes as of open(), or of the last operation that asked for them again. The size is 0
  // unless it came with them or by size().
  [[nodiscard]] const Stat& status() const { return status_; }
  // What its requests show now, and goes on to show after keep_right().
  [[nodiscard]] const orangefs::Capability& right() const { return layout_->attributes.capability; }
  void keep_right() { right_ = right(); }

 private:
  struct Target {
    std::size_t server = 0;
    orangefs::Handle datafile = 0;
    orangefs::Placement placement;
  };
  struct Layout {
    orangefs::Attributes attributes;
    std::int64_t strip_size = 0;
    bool stuffed = false;
    std::vector<Target> targets;
    RequestTemplate read;
    RequestTemplate write;
    RequestTemplate small_read;
    RequestTemplate small_write;

    [[nodiscard]] const RequestTemplate& request(orangefs::IoType type, bool small) const;
  };
  struct Transfer {
    orangefs::IoType type = orangefs::IoType::read;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    IoBytes bytes;
  };
  struct Progress;
  enum class Verdict { done, renew, again, failed };

  File(CallerSession session, orangefs::Handle handle)
      : session_(std::move(session)), handle_(handle) {}

  [[nodiscard]] Result<void> use(orangefs::Attributes attributes);
  void make_requests(Layout& layout) const;
  // Fetches the attributes again: a new capability, perhaps more datafiles.
  [[nodiscard]] net::Task<Result<void>> refresh();
  // Makes sure that the layout covers all bytes before `end`.
  [[nodiscard]] net::Task<Result<void>> reach(orangefs::IoType type, std::uint64_t end);

  [[nodiscard]] net::Task<Result<std::uint64_t>> transfer(Transfer wanted);
  // Serves what is left to do, with repetition and with a renewed capability.
  [[nodiscard]] net::Task<Result<void>> complete(Progress& progress);
  [[nodiscard]] net::Task<> attempt(Progress& progress);
  [[nodiscard]] net::Task<std::error_code> connect(Progress& progress);
  [[nodiscard]] static Verdict judge(Progress& progress);
  [[nodiscard]] net::Task<Result<std::uint64_t>> end_of_short_read(Progress& progress);
  // Reads the parts once more that ended before `end` of the range.
  [[nodiscard]] net::Task<Result<void>> read_gaps_again(Progress& progress, std::uint64_t end);

  CallerSession session_;
  orangefs::Handle handle_;
  Stat status_;
  std::optional<orangefs::Capability> right_;  // that is shown instead of a newer one
  std::shared_ptr<const Layout> layout_;       // shared with the operations that began with it
};

}  // namespace vpfs::client
