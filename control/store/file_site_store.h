#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/store/file_calls.h"
#include "control/store/journal.h"
#include "control/store/leadership.h"
#include "control/store/pause.h"
#include "control/store/site_store.h"

namespace vpfs::control {

// A SiteStore of one coordinator, in files of its machine: the journal PATH has the records, and
// PATH.term the leaderships. Both belong to this process until its end, so whatever led before has
// ended, the office is always vacant, and nothing is ever lost to another.
//
// A leadership is fsynced before claim() succeeds, so a term that was ever used is there. Where the
// last line of PATH.term was not written to its end, its term counts as used.
//
// append() is refused when PATH was moved or removed. An append() that was refused may succeed as
// replace(), which puts a file there again.
class FileSiteStore final : public SiteStore {
 public:
  // `calls` outlives the store. The error code is device_or_resource_busy if another process has
  // the files.
  [[nodiscard]] static Result<std::unique_ptr<FileSiteStore>> open(const std::string& path,
                                                                   FileCalls& calls);

  [[nodiscard]] Traits traits() const override;
  [[nodiscard]] Outcome<Seen> look() override;
  [[nodiscard]] Outcome<void> claim(const Seen& seen, const Leadership& own) override;
  [[nodiscard]] Outcome<void> confirm() override { return {}; }
  [[nodiscard]] Outcome<void> resign() override;
  [[nodiscard]] Outcome<StateStore::Loaded> load() override;
  [[nodiscard]] Outcome<void> append(std::string_view record) override;
  [[nodiscard]] Outcome<void> replace(std::string_view record) override;
  [[nodiscard]] bool wants_replacing() const override;
  void wait(Duration patience) override { pause_.wait(patience); }
  void cancel() override { pause_.end(); }

 private:
  // A journal that can be read again.
  class Part {
   public:
    Part(std::string path, std::unique_ptr<Journal> journal, FileCalls& calls)
        : path_(std::move(path)), journal_(std::move(journal)), calls_(calls) {}
    [[nodiscard]] Result<StateStore::Loaded> load();
    // Null: the last load() could not open the file.
    [[nodiscard]] Journal* journal() const { return journal_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }

   private:
    std::string path_;
    std::unique_ptr<Journal> journal_;
    FileCalls& calls_;
    bool was_read_ = false;
  };

  FileSiteStore(Part terms, Part rules) : terms_(std::move(terms)), rules_(std::move(rules)) {}

  [[nodiscard]] Outcome<void> read_terms();
  [[nodiscard]] Outcome<void> put_term(const Leadership& leadership);
  [[nodiscard]] std::string version() const;

  Part terms_;
  Part rules_;
  bool knows_terms_ = false;
  std::optional<Leadership> last_;
  std::uint64_t least_term_ = 1;
  std::vector<std::string> notes_;  // about the terms, for load()
  Pause pause_;
};

}  // namespace vpfs::control
