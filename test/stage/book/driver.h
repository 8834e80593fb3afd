#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stage/book/composer.h"
#include "stage/book/rule_book.h"
#include "test/stage/book/plain_rules.h"

namespace vpfs::stage {

[[nodiscard]] inline WallTime at(std::int64_t seconds) {
  return WallTime(std::chrono::seconds(1'800'000'000 + seconds));
}

// A rule book with its owner: a configuration file, a journal in memory, and the time.
struct BookDriver {
  Config file;
  RuleBook book{&plain_rule};
  std::vector<std::string> journal;
  WallTime now = at(0);
  std::string who = "alice (uid 1001)";

  BookDriver() {
    file.virtual_pfs.push_back({.name = "climate", .share = {.weight = 2}});
    file.rules.push_back({.name = "climate", .virtual_pfs = "climate"});
    file.rules.back().text = {.name = "climate", .condition = "uid=1", .words = {"weight=2"}};
    file.virtual_pfs.push_back({.name = "bulk"});
    file.rules.push_back({.name = "nightly", .virtual_pfs = "bulk"});
    file.rules.back().text = {.name = "nightly", .condition = "uid=2", .words = {"vpfs=bulk"}};
  }

  template <typename What>
  std::expected<Change, BookProblem> prepare(What what,
                                             std::optional<WallTime> confirm_by = {}) const {
    return book.prepare({.at = now, .who = who, .what = std::move(what), .confirm_by = confirm_by},
                        file);
  }
  template <typename What>
  std::expected<Change, BookProblem> run(What what, std::optional<WallTime> confirm_by = {}) {
    auto change = prepare(std::move(what), confirm_by);
    if (change) {
      journal.push_back(change->record);
      book.commit(change->operation);
    }
    return change;
  }
  // "PLACE: text" of what was refused; "": it was done.
  template <typename What>
  std::string refusal(What what, std::optional<WallTime> confirm_by = {}) {
    const auto change = run(std::move(what), confirm_by);
    return change ? "" : change.error().place + ": " + change.error().text;
  }
  // What ended.
  std::vector<std::string> advance(std::int64_t seconds) {
    now += std::chrono::seconds(seconds);
    std::vector<std::string> notes;
    while (const auto due = book.expire(now)) {
      const auto change = book.prepare(*due, file);
      EXPECT_TRUE(change);
      if (!change) break;
      journal.push_back(change->record);
      book.commit(change->operation);
      notes.insert(notes.end(), change->warnings.begin(), change->warnings.end());
    }
    return notes;
  }

  // The book that another process makes of the journal.
  [[nodiscard]] RuleBook replayed() const {
    RuleBook again(&plain_rule);
    for (const std::string& record : journal) {
      const auto done = again.replay(record);
      EXPECT_TRUE(done) << record << ": " << done.error();
    }
    return again;
  }

  [[nodiscard]] Composer::Composed composed() const {
    Composer composer(&plain_rule);
    return composer.compose(file, book.state());
  }
  // "climate weight=8" for each rule in force.
  [[nodiscard]] std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const RuleConfig& rule : composed().config.rules) {
      std::string line = rule.name;
      for (const std::string& word : rule.text.words) line += " " + word;
      names.push_back(line);
    }
    return names;
  }
  [[nodiscard]] Share share_of(const std::string& name) const {
    const Config config = composed().config;
    for (const VirtualPfsConfig& each : config.virtual_pfs) {
      if (each.name == name) return each.share;
    }
    ADD_FAILURE() << name;
    return {};
  }
};

[[nodiscard]] inline StartRule start_rule(std::string name, std::vector<std::string> words = {},
                                          std::string condition = "uid=7") {
  return {.rule = {.name = std::move(name),
                   .condition = std::move(condition),
                   .words = std::move(words)}};
}

}  // namespace vpfs::stage
