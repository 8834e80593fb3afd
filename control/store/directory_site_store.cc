#include "control/store/directory_site_store.h"

#include <algorithm>
#include <charconv>
#include <expected>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "control/store/shared_directory.h"

namespace vpfs::control {
namespace {

constexpr std::string_view kClaim = "claim-";
constexpr std::string_view kRules = "rules-";
constexpr std::string_view kBeat = "beat-";
constexpr std::string_view kDraft = "draft-";
constexpr std::string_view kResigned = "resigned\n";
constexpr std::string_view kSuperseded = "superseded\n";
constexpr std::size_t kNumberDigits = 20;
constexpr std::uint64_t kKept = 8;  // claims below the newest whose files stay

std::string name_of(std::string_view kind, std::uint64_t number) {
  return fmt::format("{}{:020}", kind, number);
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The number that the name has after `kind`; Nothing: it is another name.
std::optional<std::uint64_t> number_of(std::string_view name, std::string_view kind,
                                       bool may_have_more = false) {
  if (!name.starts_with(kind)) return std::nullopt;
  name.remove_prefix(kind.size());
  if (name.size() < kNumberDigits || (name.size() > kNumberDigits && !may_have_more))
    return std::nullopt;
  return number_in(name.substr(0, kNumberDigits));
}

std::unexpected<SiteStore::Failure> failure(SiteStore::Why why, std::string text) {
  return std::unexpected(SiteStore::Failure{.why = why, .text = std::move(text)});
}

// A failure of a call that may have been carried out, at least in part.
std::unexpected<SiteStore::Failure> uncertain(SiteStore::Failure failed) {
  if (failed.why != SiteStore::Why::lost) failed.why = SiteStore::Why::unreachable;
  return std::unexpected(std::move(failed));
}

std::string draft_suffix() {
  std::random_device random;
  return fmt::format("-{:08x}{:08x}", random(), random());
}

}  // namespace

Result<std::unique_ptr<DirectorySiteStore>> DirectorySiteStore::open(const std::string& directory,
                                                                     Duration lease,
                                                                     FileCalls& calls) {
  VPFS_TRY(check_shared_directory(directory));
  return std::make_unique<DirectorySiteStore>(directory, lease, calls);
}

DirectorySiteStore::DirectorySiteStore(const std::string& directory, Duration lease,
                                       FileCalls& calls)
    : files_(directory, calls), lease_(lease), draft_suffix_(draft_suffix()) {}

SiteStore::Traits DirectorySiteStore::traits() const {
  return {.has_standbys = true, .lease = lease_, .shows_beats = true, .vacancy_is_certain = false};
}

std::unexpected<SiteStore::Failure> DirectorySiteStore::lost() const {
  return failure(Why::lost, fmt::format("{}: another coordinator has claimed the office",
                                        files_.path_of(name_of(kClaim, number_))));
}

SiteStore::Outcome<DirectorySiteStore::Numbers> DirectorySiteStore::numbers() {
  const auto names = files_.names();
  VPFS_TRY(names);
  Numbers found;
  for (const std::string& name : *names) {
    const auto claim = number_of(name, kClaim);
    const auto number = claim ? claim : number_of(name, kRules);
    if (!number || *number == 0) continue;
    if (claim) found.highest_claim = std::max(found.highest_claim, *claim);
    found.highest = std::max(found.highest, *number);
    found.lowest = found.lowest == 0 ? *number : std::min(found.lowest, *number);
  }
  return found;
}

SiteStore::Outcome<SiteStore::Seen> DirectorySiteStore::look() {
  const auto found = numbers();
  VPFS_TRY(found);
  const std::uint64_t number = found->highest;
  if (number < highest_seen_) {
    return failure(
        Why::unreachable,
        fmt::format("{}: had {} and has not any more: it was removed, or the file system "
                    "is not mounted",
                    files_.path_of(""), name_of(kClaim, highest_seen_)));
  }
  Seen seen;
  seen.version = std::to_string(number);
  if (number == 0) return seen;
  const std::string name = name_of(kClaim, number);
  const auto read = files_.read(name);
  VPFS_TRY(read);
  const std::optional<std::string>& text = *read;
  if (!text && found->highest_claim == number) {
    return failure(Why::unreachable,
                   fmt::format("{}: was removed a moment ago", files_.path_of(name)));
  }
  if (!text) {
    return failure(
        Why::damaged,
        fmt::format("{}: is not there, but {} is. Nothing was changed. Restore it from a "
                    "backup, or move all files of the directory away to start without "
                    "live rules",
                    files_.path_of(name), name_of(kRules, number)));
  }
  const std::size_t size = text->find('\n');
  if (size == std::string::npos) {
    return failure(Why::damaged,
                   fmt::format("{}: the file is damaged: it has no whole line. Nothing was changed",
                               files_.path_of(name)));
  }
  auto leader = parse_leadership(text->substr(0, size));
  if (!leader) {
    return failure(Why::damaged, fmt::format("{}: {}. Nothing was changed", files_.path_of(name),
                                             leader.error().message));
  }
  const auto beat = files_.read(name_of(kBeat, number));
  VPFS_TRY(beat);
  leader->has_resigned = text->find(kResigned, size + 1) != std::string::npos;
  seen.is_vacant = leader->has_resigned;
  seen.least_term = leader->term + 1;
  seen.leader = *std::move(leader);
  seen.beat = number_in(beat->value_or("")).value_or(0);
  highest_seen_ = number;
  return seen;
}

SiteStore::Outcome<void> DirectorySiteStore::claim(const Seen& seen, const Leadership& own) {
  VPFS_ASSERT(own.term >= seen.least_term && !own.has_resigned);
  const auto before = number_in(seen.version);
  VPFS_ASSERT(before.has_value());
  const std::uint64_t number = *before + 1;
  const std::string line = to_record(own) + "\n";
  VPFS_TRY(make_claim(number, line));
  if (auto settled = settle_claim(number, line); !settled) return uncertain(settled.error());
  number_ = number;
  highest_seen_ = std::max(highest_seen_, number);
  line_ = line;
  records_.reset();
  unchecked_.reset();
  if (auto confirmed = confirm(); !confirmed) return uncertain(confirmed.error());
  return {};
}

// After an error the claim is not there, except where the server did not answer.
SiteStore::Outcome<void> DirectorySiteStore::make_claim(std::uint64_t number,
                                                        const std::string& line) {
  const std::string name = name_of(kClaim, number);
  const std::string draft = name_of(kDraft, number) + draft_suffix_;
  const auto written = files_.write(draft, O_CREAT | O_TRUNC, line);
  const auto linked =
      written ? files_.link(draft, name) : Outcome<bool>(std::unexpected(written.error()));
  files_.remove(draft);
  VPFS_TRY(linked);
  if (*linked) return {};
  // This store has made it, perhaps, and was not told.
  const auto there = files_.read(name);
  VPFS_TRY(there);
  if (*there == line) return {};
  return failure(Why::lost, fmt::format("{}: another coordinator has claimed the office first",
                                        files_.path_of(name)));
}

SiteStore::Outcome<void> DirectorySiteStore::settle_claim(std::uint64_t number,
                                                          const std::string& line) {
  VPFS_TRY(files_.sync_directory());
  const auto found = numbers();
  VPFS_TRY(found);
  if (found->highest > number) {
    return failure(Why::lost, fmt::format("{}: another coordinator has the office",
                                          files_.path_of(name_of(kClaim, found->highest))));
  }
  for (std::uint64_t lower = number - 1; lower >= found->lowest && lower > 0; --lower) {
    VPFS_TRY(supersede(lower));
  }
  const auto own = files_.read(name_of(kClaim, number));
  VPFS_TRY(own);
  if (*own == line) return {};
  return failure(Why::lost, fmt::format("{}: another coordinator has claimed the office",
                                        files_.path_of(name_of(kClaim, number))));
}

SiteStore::Outcome<void> DirectorySiteStore::supersede(std::uint64_t number) {
  const std::string name = name_of(kClaim, number);
  const auto text = files_.read(name);
  VPFS_TRY(text);
  if (text->value_or("").contains(kSuperseded)) return {};
  VPFS_TRY(files_.write(name, O_APPEND, kSuperseded));
  return {};
}

SiteStore::Outcome<std::string> DirectorySiteStore::marks() {
  VPFS_ASSERT(number_ != 0);
  const auto read = files_.read(name_of(kClaim, number_));
  VPFS_TRY(read);
  const std::optional<std::string>& text = *read;
  if (text && text->starts_with(line_)) return text->substr(line_.size());
  if (text) return lost();
  // Removed by a successor, or the whole directory is not there.
  const auto found = numbers();
  VPFS_TRY(found);
  if (found->highest > number_) return lost();
  return failure(Why::unreachable,
                 fmt::format("{}: is not there any more: it was removed, or the file system is not "
                             "mounted",
                             files_.path_of(name_of(kClaim, number_))));
}

SiteStore::Outcome<void> DirectorySiteStore::check() {
  const auto found = marks();
  VPFS_TRY(found);
  if (!found->empty()) return lost();
  return {};
}

SiteStore::Outcome<void> DirectorySiteStore::check_written() {
  if (auto checked = check(); !checked) return uncertain(std::move(checked.error()));
  return {};
}

SiteStore::Outcome<void> DirectorySiteStore::confirm() {
  VPFS_TRY(beat());
  return check();
}

// In place: that needs no room on a full disk.
SiteStore::Outcome<void> DirectorySiteStore::beat() {
  ++beat_;
  VPFS_TRY(files_.write(name_of(kBeat, number_), O_CREAT, fmt::format("{:020}", beat_)));
  return {};
}

SiteStore::Outcome<void> DirectorySiteStore::resign() {
  const auto found = marks();
  VPFS_TRY(found);
  if (found->contains(kResigned)) return {};
  // A part of the mark is there if it was not written to its end before.
  if (!kResigned.starts_with(*found)) return lost();
  const auto written = files_.write(name_of(kClaim, number_), O_APPEND, kResigned);
  if (!written) return uncertain(written.error());
  return {};
}

SiteStore::Outcome<StateStore::Loaded> DirectorySiteStore::load() {
  VPFS_TRY(check());
  auto loaded = newest_records();
  VPFS_TRY(loaded);
  unchecked_.reset();
  records_.emplace(files_, name_of(kRules, number_));
  VPFS_TRY(records_->put(*loaded));
  VPFS_TRY(check());
  remove_old_files();
  return loaded;
}

// Each name is opened, whether a list of the directory has it or not: the list may come from a
// cache. The first is the own one, which is there if load() is repeated.
SiteStore::Outcome<StateStore::Loaded> DirectorySiteStore::newest_records() {
  const auto found = numbers();
  VPFS_TRY(found);
  for (std::uint64_t number = number_; number >= found->lowest && number > 0; --number) {
    const std::string name = name_of(kRules, number);
    const auto read = files_.read(name);
    VPFS_TRY(read);
    const std::optional<std::string>& bytes = *read;
    if (bytes) return RecordFile::parse(*bytes, files_.path_of(name));
  }
  return StateStore::Loaded();
}

void DirectorySiteStore::remove_old_files() {
  const auto names = files_.names();
  if (!names) return;
  for (const std::string& name : *names) {
    for (const std::string_view kind : {kClaim, kRules, kBeat, kDraft}) {
      const auto number = number_of(name, kind, true);
      if (number && *number + kKept < number_) files_.remove(name);
    }
  }
}

SiteStore::Outcome<void> DirectorySiteStore::append(std::string_view record) {
  VPFS_TRY(check());
  VPFS_ASSERT(records_.has_value());
  // After an answer that came too late, it is there.
  if (unchecked_ != record) {
    unchecked_.reset();
    VPFS_TRY(records_->append(record));
    unchecked_ = record;
  }
  VPFS_TRY(check_written());
  unchecked_.reset();
  return {};
}

SiteStore::Outcome<void> DirectorySiteStore::replace(std::string_view record) {
  VPFS_TRY(check());
  VPFS_ASSERT(records_.has_value());
  unchecked_.reset();
  VPFS_TRY(records_->put(record));
  return check_written();
}

}  // namespace vpfs::control
