#include "control/admin/live_state.h"

#include <utility>
#include <variant>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "control/wire/protocol.h"
#include "stage/book/record.h"
#include "stage/config/rule_text.h"

namespace vpfs::control {
namespace {

Error::Code code_of(stage::ProblemCode code) {
  switch (code) {
    case stage::ProblemCode::invalid:
      return Error::INVALID;
    case stage::ProblemCode::not_found:
      return Error::NOT_FOUND;
    case stage::ProblemCode::exists:
      return Error::EXISTS;
    case stage::ProblemCode::unavailable:
      return Error::UNAVAILABLE;
  }
  return Error::INTERNAL;
}

std::string place_and_text(const stage::Suspended& suspended) {
  if (suspended.place.empty()) return suspended.text;
  return fmt::format("{}: {}", suspended.place, suspended.text);
}

}  // namespace

std::string note_of(const stage::Suspended& suspended) {
  return fmt::format("rule {} is not in force: {}", suspended.name, place_and_text(suspended));
}

Error to_error(const stage::BookProblem& problem) {
  return make_error(code_of(problem.code), problem.place, problem.text);
}

LiveState::LiveState(std::unique_ptr<StateStore> store, const stage::Config& file)
    : store_(std::move(store)),
      file_(&file),
      book_(stage::parse_rule),
      composer_(stage::parse_rule) {}

Result<std::unique_ptr<LiveState>> LiveState::load(std::unique_ptr<StateStore> store,
                                                   const stage::Config& file, WallTime now,
                                                   std::vector<std::string>& notes) {
  std::unique_ptr<LiveState> made(new LiveState(std::move(store), file));
  if (made->store_ != nullptr) {
    Result<StateStore::Loaded> loaded = made->store_->load();
    VPFS_TRY(loaded);
    VPFS_TRY(made->take(*loaded));
    notes.insert(notes.end(), loaded->notes.begin(), loaded->notes.end());
  }
  made->begin(now, notes);
  return made;
}

Result<std::unique_ptr<LiveState>> LiveState::replay(const StateStore::Loaded& loaded,
                                                     const stage::Config& file, WallTime now,
                                                     std::vector<std::string>& notes) {
  std::unique_ptr<LiveState> made(new LiveState(nullptr, file));
  VPFS_TRY(made->take(loaded));
  notes.insert(notes.end(), loaded.notes.begin(), loaded.notes.end());
  const std::uint64_t kept = made->book_.state().number;
  made->begin(now, notes);
  made->is_behind_ = made->book_.state().number != kept;
  made->owner_keeps_ = true;
  return made;
}

Result<void> LiveState::take(const StateStore::Loaded& loaded) {
  for (const StateStore::Record& record : loaded.records) {
    if (const auto replayed = book_.replay(record.text); !replayed) {
      return fail(fmt::format("{}: {}", record.place, replayed.error()));
    }
  }
  return {};
}

void LiveState::begin(WallTime now, std::vector<std::string>& notes) {
  if (const auto& pending = book_.state().pending; pending && pending->deadline <= now) {
    notes.push_back(fmt::format("version {} was not confirmed in time: back to version {}",
                                book_.state().version, pending->version));
  }
  if (!expire(now)) compose();
  for (const stage::Suspended& each : composed_.suspended) {
    notes.push_back(note_of(each));
  }
}

void LiveState::compose(const stage::ParsedRules* read) {
  composed_ = composer_.compose(*file_, book_.state(), read);
}

std::expected<stage::Change, Error> LiveState::prepare(stage::BookOperation operation,
                                                       stage::ParsedRules* read) const {
  auto change =
      book_.prepare(std::move(operation), *file_,
                    {.composer = &composer_, .suspended = &composed_.suspended, .read = read});
  if (!change) return std::unexpected(to_error(change.error()));
  return std::move(*change);
}

std::expected<void, Error> LiveState::carry_out(const stage::Change& change,
                                                const stage::ParsedRules* read) {
  if (const Result<void> kept = keep(change.record); !kept) {
    // The way out on a bad day does not depend on a disk.
    if (!std::holds_alternative<stage::SetBypass>(change.operation.what)) {
      spdlog::error("control.journal: {}; nothing was changed", kept.error().message);
      return std::unexpected(make_error(Error::UNAVAILABLE, "control.journal",
                                        kept.error().message + "; nothing was changed"));
    }
    spdlog::error("control.journal: {}; bypass is {} all the same, and the journal is tried again",
                  kept.error().message,
                  std::get<stage::SetBypass>(change.operation.what).on ? "on" : "off");
    is_behind_ = true;
  }
  book_.commit(change.operation);
  keep_small();
  compose(read);
  return {};
}

void LiveState::commit(const stage::BookOperation& operation, const stage::ParsedRules* read) {
  book_.commit(operation);
  compose(read);
}

bool LiveState::expire(WallTime now) {
  if (owner_keeps_) return false;
  const std::optional<stage::BookOperation> due = this->due(now);
  if (!due) return false;
  // Due rules end even if the journal cannot be written: their times say the same at the next
  // start.
  const auto record = stage::to_record(*due, book_.state().number + 1);
  if (const Result<void> kept = keep(record.value()); !kept) {
    spdlog::error("control.journal: {}", kept.error().message);
    is_behind_ = true;
  }
  book_.commit(*due);
  keep_small();
  compose();
  return true;
}

Result<void> LiveState::keep(const std::string& record) {
  if (store_ == nullptr) return {};
  if (!is_behind_ && !store_->is_in_place()) {
    spdlog::error("control.journal: the file was moved or removed: writing a new one");
    is_behind_ = true;
  }
  if (is_behind_) {
    if (Result<void> replaced = store_->replace(book_.snapshot()); !replaced) return replaced;
    is_behind_ = false;
  }
  return store_->append(record);
}

void LiveState::catch_up() {
  if (store_ == nullptr || is_kept()) return;
  const Result<void> replaced = store_->replace(book_.snapshot());
  is_behind_ = !replaced;
  if (!replaced) spdlog::error("control.journal: {}", replaced.error().message);
}

void LiveState::keep_small() {
  if (store_ == nullptr || is_behind_ || !store_->wants_replacing()) return;
  const Result<void> replaced = store_->replace(book_.snapshot());
  if (!replaced) spdlog::warn("control.journal: {}", replaced.error().message);
}

Result<void> LiveState::fits(const stage::Config& file) const {
  stage::Composer composer(stage::parse_rule);
  const stage::Composer::Composed composed = composer.compose(file, book_.state());
  auto newly = stage::newly_suspended(composed_.suspended, composed.suspended);
  // Administrators of this stage cannot change rules of a coordinator.
  std::erase_if(newly, [](const stage::Suspended& each) {
    return each.origin == stage::RuleOrigin::coordinator;
  });
  if (newly.empty()) return {};
  const stage::Suspended& first = newly.front();
  return fail(fmt::format(
      "the live rule {} does not fit this file: {}; change or stop it first{}", first.name,
      place_and_text(first),
      newly.size() > 1 ? fmt::format(" (and {} others)", newly.size() - 1) : std::string()));
}

void LiveState::take_on(const stage::Config& file) {
  file_ = &file;
  composer_.forget();
  compose();
}

}  // namespace vpfs::control
