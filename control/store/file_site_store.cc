#include "control/store/file_site_store.h"

#include <chrono>
#include <expected>

#include <fmt/format.h>

#include "base/check.h"

namespace vpfs::control {
namespace {

using FileFailure = SiteStore::Failure;

std::unexpected<FileFailure> refused(std::string text) {
  return std::unexpected(FileFailure{.why = SiteStore::Why::refused, .text = std::move(text)});
}

// Calls of the system that failed have a code; bytes that cannot be right have none.
std::unexpected<FileFailure> not_read(Error error) {
  return std::unexpected(
      FileFailure{.why = error.code ? SiteStore::Why::refused : SiteStore::Why::damaged,
                  .text = std::move(error.message)});
}

// The records of PATH.term in their order. A leader that resigned is there twice.
Result<std::optional<Leadership>> last_leadership(const StateStore::Loaded& loaded) {
  std::optional<Leadership> last;
  for (const StateStore::Record& record : loaded.records) {
    auto next = parse_leadership(record.text);
    if (!next) return fail(fmt::format("{}: {}", record.place, next.error().message));
    const bool resigns =
        last && next->term == last->term && next->has_resigned && !last->has_resigned;
    if (last && next->term <= last->term && !resigns) {
      return fail(fmt::format("{}: the term {} follows {}: the file was put together wrongly",
                              record.place, next->term, last->term));
    }
    last = *std::move(next);
  }
  return last;
}

}  // namespace

Result<std::unique_ptr<FileSiteStore>> FileSiteStore::open(const std::string& path,
                                                           FileCalls& calls) {
  const std::string term_path = path + ".term";
  auto terms = Journal::open(term_path, calls);
  VPFS_TRY(terms);
  auto rules = Journal::open(path, calls);
  VPFS_TRY(rules);
  return std::unique_ptr<FileSiteStore>(new FileSiteStore(Part(term_path, *std::move(terms), calls),
                                                          Part(path, *std::move(rules), calls)));
}

// The lock of a part is free for a moment while it is opened again. Another process does not get
// far then, because this one still has the other part.
Result<StateStore::Loaded> FileSiteStore::Part::load() {
  if (was_read_) {
    journal_.reset();
    auto opened = Journal::open(path_, calls_);
    VPFS_TRY(opened);
    journal_ = *std::move(opened);
  }
  was_read_ = true;
  return journal_->load();
}

SiteStore::Traits FileSiteStore::traits() const {
  return {.has_standbys = false,
          .lease = std::chrono::hours(24 * 365),
          .shows_beats = false,
          .vacancy_is_certain = false};
}

SiteStore::Outcome<SiteStore::Seen> FileSiteStore::look() {
  VPFS_TRY(read_terms());
  return Seen{.leader = last_,
              .is_vacant = true,
              .beat = 0,
              .version = version(),
              .least_term = least_term_};
}

SiteStore::Outcome<void> FileSiteStore::read_terms() {
  if (knows_terms_) return {};
  auto loaded = terms_.load();
  if (!loaded) {
    loaded.error().message +=
        "; --term has to be above the last term then: vpfsctl status of a stage shows it";
    return not_read(std::move(loaded.error()));
  }
  auto last = last_leadership(*loaded);
  if (!last) return not_read(std::move(last.error()));
  last_ = *std::move(last);
  // Whether the term of a line that was not written to its end was used is not known.
  least_term_ = (last_ ? last_->term : 0) + (loaded->notes.empty() ? 1 : 2);
  notes_ = std::move(loaded->notes);
  knows_terms_ = true;
  return {};
}

std::string FileSiteStore::version() const {
  return std::to_string(last_ ? last_->term : 0);
}

SiteStore::Outcome<void> FileSiteStore::claim(const Seen& seen, const Leadership& own) {
  VPFS_ASSERT(own.term >= seen.least_term && !own.has_resigned);
  VPFS_TRY(read_terms());
  if (seen.version != version()) {
    return std::unexpected(Failure{.why = Why::lost,
                                   .text = fmt::format("{}: another has led since: term {}",
                                                       terms_.path(), last_ ? last_->term : 0)});
  }
  return put_term(own);
}

SiteStore::Outcome<void> FileSiteStore::resign() {
  VPFS_ASSERT(last_);
  if (last_->has_resigned) return {};
  Leadership over = *last_;
  over.has_resigned = true;
  return put_term(over);
}

SiteStore::Outcome<void> FileSiteStore::put_term(const Leadership& leadership) {
  Journal& journal = *terms_.journal();
  const std::string record = to_record(leadership);
  const Result<void> put =
      journal.wants_replacing() ? journal.replace(record) : journal.append(record);
  if (!put) return refused(put.error().message);
  last_ = leadership;
  least_term_ = leadership.term + 1;
  return {};
}

SiteStore::Outcome<StateStore::Loaded> FileSiteStore::load() {
  auto loaded = rules_.load();
  if (!loaded) return not_read(std::move(loaded.error()));
  loaded->notes.insert(loaded->notes.begin(), notes_.begin(), notes_.end());
  notes_.clear();
  return *std::move(loaded);
}

SiteStore::Outcome<void> FileSiteStore::append(std::string_view record) {
  Journal* const journal = rules_.journal();
  VPFS_ASSERT(journal != nullptr);
  if (!journal->is_in_place()) {
    return refused(fmt::format("{}: the file was moved or removed, so nothing can be added to it",
                               rules_.path()));
  }
  const Result<void> appended = journal->append(record);
  if (!appended) return refused(appended.error().message);
  return {};
}

SiteStore::Outcome<void> FileSiteStore::replace(std::string_view record) {
  Journal* const journal = rules_.journal();
  VPFS_ASSERT(journal != nullptr);
  const Result<void> replaced = journal->replace(record);
  if (!replaced) return refused(replaced.error().message);
  return {};
}

bool FileSiteStore::wants_replacing() const {
  return rules_.journal() != nullptr && rules_.journal()->wants_replacing();
}

}  // namespace vpfs::control
