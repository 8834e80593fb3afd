#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/store/file_calls.h"
#include "control/store/leadership.h"
#include "control/store/pause.h"
#include "control/store/record_file.h"
#include "control/store/shared_files.h"
#include "control/store/site_store.h"

namespace vpfs::control {

// A SiteStore in a directory that several hosts share, over NFS or on a disk that they all reach.
// The claims of the office are numbered from 1, and N is a number of 20 digits:
//
//   claim-N     the leadership (leadership.h), one line. "resigned" or "superseded" may follow.
//   rules-N     the records of that leader (record_file.h)
//   beat-N      a counter, which that leader changes with each confirmation
//   draft-N-*   becomes claim-N or is removed
//
// The highest claim has the office. A claim is written under another name, fsynced, and linked to
// its name, which succeeds for one claimant. After that the claimant, in this order,
//
//   1. fails if there is a higher claim, so this one came too late;
//   2. writes "superseded" into all lower claims;
//   3. reads the records of the newest lower leader that has any, in load(), and puts them into a
//      file of its own. Until that is there, the next claimant reads what this one read.
//
// A leader reads its own claim before and after each record that it writes and fsyncs. If the claim
// has a mark, or is not there, the office is lost. If the second look finds no mark, then step 2 of
// the successor comes after the fsync, and so does step 3: the record is read. An append() that
// began before step 2 may be read too, although it has failed with Why::lost.
//
// Nothing here depends on a clock, on locks, or on an old list of the directory in a cache of NFS:
// that link() fails where the name is taken is the server's word, opening a file shows what others
// have written before ("close-to-open"; the option nocto of a mount switches it off), and records
// are looked for by name. Step 1 needs a list, which a client reads anew after its own link(); it
// matters to a claimant that was stopped while eight others came and its number was removed. A list
// that is too old for look() makes a standby late and no more.
//
// Files of claims that are more than eight below the newest are removed after step 3.
class DirectorySiteStore final : public SiteStore {
 public:
  // A directory that is there and fits (shared_directory.h). `calls` outlives the store.
  [[nodiscard]] static Result<std::unique_ptr<DirectorySiteStore>> open(
      const std::string& directory, Duration lease, FileCalls& calls);
  // The directory fits.
  DirectorySiteStore(const std::string& directory, Duration lease, FileCalls& calls);

  [[nodiscard]] Traits traits() const override;
  [[nodiscard]] Outcome<Seen> look() override;
  // REQUIRES: no other claimant has own.incarnation, which tells a claim that was answered too late
  // from another's.
  [[nodiscard]] Outcome<void> claim(const Seen& seen, const Leadership& own) override;
  [[nodiscard]] Outcome<void> confirm() override;
  [[nodiscard]] Outcome<void> resign() override;
  [[nodiscard]] Outcome<StateStore::Loaded> load() override;
  // An append() that was refused may succeed as replace().
  [[nodiscard]] Outcome<void> append(std::string_view record) override;
  [[nodiscard]] Outcome<void> replace(std::string_view record) override;
  [[nodiscard]] bool wants_replacing() const override { return records_ && records_->has_grown(); }
  void wait(Duration patience) override { pause_.wait(patience); }
  // Ends wait() alone: calls of files cannot be ended.
  void cancel() override { pause_.end(); }

 private:
  // The numbers of files that are there; 0: none.
  struct Numbers {
    std::uint64_t highest_claim = 0;
    std::uint64_t highest = 0;  // of claims and records
    std::uint64_t lowest = 0;
  };

  [[nodiscard]] Outcome<Numbers> numbers();
  [[nodiscard]] Outcome<void> make_claim(std::uint64_t number, const std::string& line);
  [[nodiscard]] Outcome<void> settle_claim(std::uint64_t number, const std::string& line);
  [[nodiscard]] Outcome<void> supersede(std::uint64_t number);
  // What follows the line of this claim: nothing, or marks. Why::lost: it is not there.
  [[nodiscard]] Outcome<std::string> marks();
  [[nodiscard]] Outcome<void> check();
  [[nodiscard]] Outcome<void> check_written();
  [[nodiscard]] Outcome<void> beat();
  [[nodiscard]] Outcome<StateStore::Loaded> newest_records();
  void remove_old_files();
  [[nodiscard]] std::unexpected<Failure> lost() const;

  SharedFiles files_;
  const Duration lease_;
  const std::string draft_suffix_;  // of no other process
  std::uint64_t highest_seen_ = 0;  // of claims
  std::uint64_t number_ = 0;        // of the own claim; 0: none
  std::string line_;                // of the own claim
  std::uint64_t beat_ = 0;
  std::optional<RecordFile> records_;     // after load()
  std::optional<std::string> unchecked_;  // a record that is written, if the office was not lost
  Pause pause_;
};

}  // namespace vpfs::control
