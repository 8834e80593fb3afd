#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "control/store/state_store.h"

namespace vpfs::control {

// Live rules that came from the process before. They go on in a journal, from the first replace()
// on, or in memory alone.
class HandedBook final : public StateStore {
 public:
  // Null: there is no journal. What is in it is of an earlier time, and is replaced.
  HandedBook(std::string record, std::unique_ptr<StateStore> journal)
      : record_(std::move(record)), journal_(std::move(journal)) {}

  [[nodiscard]] Result<Loaded> load() override {
    Loaded loaded = {.records = {{.text = record_, .place = "the rules of the process before"}},
                     .notes = {}};
    if (journal_ == nullptr) return loaded;
    auto before = journal_->load();
    VPFS_TRY(before);
    loaded.notes = std::move(before->notes);
    if (!before->records.empty()) {
      loaded.notes.push_back("control.journal: its records, from " + before->records.front().place +
                             " on, give way to the rules of the process before");
    }
    return loaded;
  }
  [[nodiscard]] Result<void> append(std::string_view record) override {
    return journal_ == nullptr ? Result<void>() : journal_->append(record);
  }
  [[nodiscard]] Result<void> replace(std::string_view record) override {
    if (journal_ == nullptr) return {};
    Result<void> replaced = journal_->replace(record);
    is_written_ = is_written_ || replaced;
    return replaced;
  }
  [[nodiscard]] bool is_in_place() const override {
    return journal_ == nullptr || (is_written_ && journal_->is_in_place());
  }
  [[nodiscard]] bool wants_replacing() const override {
    return journal_ != nullptr && journal_->wants_replacing();
  }

 private:
  const std::string record_;
  const std::unique_ptr<StateStore> journal_;
  bool is_written_ = false;  // until then the journal may still be another process's
};

}  // namespace vpfs::control
