// A rule book and its journal over restarts, power cuts and full disks.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/store/journal.h"
#include "control/store/journal_lines.h"
#include "stage/book/rule_book.h"
#include "test/control/store/book_model.h"
#include "test/control/store/memory_disk.h"
#include "test/stage/book/plain_rules.h"
#include "test/support/places.h"

namespace vpfs::control {
namespace {

WallTime later(WallTime time, std::uint64_t seconds) {
  return time + std::chrono::seconds(seconds);
}

// An operation, whether it should be accepted, and what it then makes of the model.
struct Step {
  stage::BookOperation operation;
  bool accepted = true;
  BookModel after;
};

class Steps {
 public:
  explicit Steps(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  Step next(const BookModel& before, WallTime now) {
    now_ = now;
    step_ = {.operation = {.at = now, .who = "alice", .what = stage::Confirm{}}, .after = before};
    switch (below(14)) {
      case 0:
      case 1:
        start(before);
        break;
      case 2:
      case 3:
        change(before);
        break;
      case 4:
        stop(before);
        break;
      case 5:
        apply(before);
        break;
      case 6:
        step_.accepted = before.pending.has_value();
        step_.after.pending.reset();
        break;
      case 7:
        roll_back(before);
        break;
      case 8:
      case 9:
        start_job();
        break;
      case 10: {
        const std::string id = std::to_string(below(6));
        step_.operation.what = stage::StopJob{id};
        step_.accepted = step_.after.jobs.erase(id) == 1;
        break;
      }
      case 11:
      case 12:
        site(before);
        break;
      default:
        bypass();
    }
    return step_;
  }

 private:
  std::string any_name() { return std::string(1, static_cast<char>('a' + below(7))); }
  std::string any_word() { return "weight=" + std::to_string(below(9) + 1); }
  BookModel::Until any_until() {
    if (below(3) > 0) return std::nullopt;
    return later(now_, below(50) + 1);
  }
  std::string lasting(const BookModel::Until& until) {
    return "for=" + std::to_string((*until - now_).count()) + "s";
  }

  void start(const BookModel& before) {
    const BookModel::Rule rule = {any_name(), any_word() + " ", any_until(), now_};
    stage::StartRule made = {.rule = {.name = rule.name, .condition = "uid=1", .words = {}}};
    made.rule.words = {rule.words.substr(0, rule.words.size() - 1)};
    if (rule.until) made.rule.words.push_back(lasting(rule.until));
    step_.operation.what = made;
    step_.accepted =
        !before.has_rule(rule.name) && !before.has_site_rule(rule.name) && !before.pending;
    BookModel::Set set = before.set();
    set.rules.insert(set.rules.begin(), rule);
    step_.after.add_version(set);
  }

  void change(const BookModel& before) {
    const std::string word = any_word();
    const BookModel::Until until = any_until();
    stage::ChangeRule made = {.name = below(4) == 0 ? "default" : any_name(), .words = {word}};
    if (until) made.words.push_back(lasting(until));
    step_.operation.what = made;
    step_.accepted = !before.pending;
    BookModel::Set set = before.set();
    if (made.name == "default") {
      if (set.default_words.empty()) set.default_since = now_;
      set.default_words = word + " ";
      if (until) set.default_until = until;
    } else {
      step_.accepted = step_.accepted && before.has_rule(made.name);
      for (BookModel::Rule& rule : set.rules) {
        if (rule.name != made.name) continue;
        rule.words = word + " ";
        if (until) rule.until = until;
      }
    }
    step_.after.add_version(set);
  }

  void stop(const BookModel& before) {
    const std::string name = below(4) == 0 ? "default" : any_name();
    step_.operation.what = stage::StopRule{name};
    BookModel::Set set = before.set();
    if (name == "default") {
      step_.accepted = !set.default_words.empty() && !before.pending;
      set.default_words = "";
      set.default_until.reset();
      set.default_since = {};
    } else {
      step_.accepted = before.has_rule(name) && !before.pending;
      std::erase_if(set.rules, [&](const BookModel::Rule& rule) { return rule.name == name; });
    }
    step_.after.add_version(set);
  }

  void apply(const BookModel& before) {
    stage::ApplySet made;
    BookModel::Set set;
    for (char name = 'a'; name < 'h'; ++name) {
      if (below(2) == 0) continue;
      const BookModel::Rule rule = {std::string(1, name), any_word() + " ", any_until(), now_};
      auto& put = made.rules.emplace_back();
      put.text = {.name = rule.name,
                  .condition = "uid=1",
                  .words = {rule.words.substr(0, rule.words.size() - 1)}};
      if (rule.until) put.text.words.push_back(lasting(rule.until));
      set.rules.push_back(rule);
      for (const BookModel::Rule& old : before.set().rules) {
        if (old.name != rule.name || old.words != rule.words || old.until != rule.until) continue;
        set.rules.back() = old;
      }
    }
    if (below(2) == 0) {
      set.default_words = any_word() + " ";
      const BookModel::Set& old = before.set();
      const bool same = old.default_words == set.default_words && !old.default_until;
      set.default_since = same ? old.default_since : now_;
      made.shares = {{.virtual_pfs = "default",
                      .words = {set.default_words.substr(0, set.default_words.size() - 1)}}};
    }
    step_.operation.what = made;
    if (below(2) == 0) step_.operation.confirm_by = later(now_, below(60) + 1);
    step_.accepted = !before.pending;
    for (const BookModel::Rule& rule : set.rules) {
      const bool is_here = before.has_rule(rule.name);
      step_.accepted = step_.accepted && (is_here || !before.has_site_rule(rule.name));
    }
    const std::size_t version = before.versions.size() - 1;
    step_.after.add_version(set);
    if (step_.operation.confirm_by && step_.after.versions.size() > before.versions.size()) {
      step_.after.pending = {*step_.operation.confirm_by, version};
    }
  }

  void roll_back(const BookModel& before) {
    const std::size_t newest = before.versions.size() - 1;
    const std::size_t version = newest + 1 - std::min(below(120), newest + 1);
    step_.operation.what = stage::Rollback{version};
    step_.accepted = before.knows(version) && (version != newest || before.pending);
    if (!step_.accepted) return;
    step_.after.pending.reset();
    step_.after.add_version(BookModel::running(before.versions[version], now_));
  }

  void start_job() {
    stage::StartJob made = {.job = {.jobid = std::to_string(below(6)), .clients = {"10.0.0.1"}}};
    BookModel::Job job = {"", any_until()};
    if (below(2) == 0) {
      made.words = {any_word()};
      job.words = made.words.front() + " ";
    }
    made.until = job.until;
    step_.operation.what = made;
    step_.after.jobs[made.job.jobid] = job;
  }

  void site(const BookModel& before) {
    stage::ReplaceSite made = {.site = "site", .rules = {}, .jobs = {}};
    step_.after.site.clear();
    step_.after.site_jobs.clear();
    for (char name = 'a'; name < 'h'; ++name) {
      if (below(3) != 0) continue;
      const std::string word = any_word();
      BookModel::Rule rule = {std::string(1, name), word + " ", any_until(), now_};
      made.rules.push_back({.text = {.name = rule.name, .condition = "uid=1", .words = {word}},
                            .until = rule.until});
      for (const BookModel::Rule& old : before.site) {
        const bool is_same =
            old.name == rule.name && old.words == rule.words && old.until == rule.until;
        if (is_same) rule.since = old.since;
      }
      step_.after.site.push_back(rule);
    }
    for (int id = 0; id < 6; ++id) {
      if (below(3) != 0) continue;
      const BookModel::Until until = any_until();
      made.jobs.push_back(
          {.job = {.jobid = std::to_string(id), .clients = {"10.0.0.1"}}, .until = until});
      step_.after.site_jobs[std::to_string(id)] = until;
    }
    step_.operation.what = made;
  }

  void bypass() {
    const bool on = below(2) == 0;
    const BookModel::Until until = on ? any_until() : std::nullopt;
    step_.operation.what = stage::SetBypass{.on = on, .until = until};
    step_.after.bypass = on;
    step_.after.bypass_until = until;
  }

  std::mt19937_64 random_;
  WallTime now_;
  Step step_;
};

// The owner of a book and its journal, as a program that is started again and again.
class BookOwner {
 public:
  BookOwner(MemoryDisk& disk, const stage::Config& file) : disk_(disk), file_(file) { start(); }

  void start() {
    journal_.reset();
    book_ = stage::RuleBook(&stage::plain_rule);
    Result<std::unique_ptr<Journal>> journal = Journal::open(kJournalPath, disk_);
    ASSERT_TRUE(journal) << journal.error().message;
    journal_ = std::move(*journal);
    const auto loaded = journal_->load();
    ASSERT_TRUE(loaded) << loaded.error().message;
    for (const StateStore::Record& record : loaded->records) {
      const auto replayed = book_.replay(record.text);
      ASSERT_TRUE(replayed) << record.place << ": " << replayed.error();
    }
  }

  // Whether it was done.
  bool run(const stage::BookOperation& operation) {
    const auto change = book_.prepare(operation, file_);
    if (!change) return false;
    if (!journal_->append(change->record)) return false;
    book_.commit(change->operation);
    return true;
  }
  [[nodiscard]] bool would_run(const stage::BookOperation& operation) const {
    return book_.prepare(operation, file_).has_value();
  }
  void shrink() { (void)journal_->replace(book_.snapshot()); }
  [[nodiscard]] const stage::RuleBook& book() const { return book_; }
  [[nodiscard]] bool wants_shrinking() const { return journal_->wants_replacing(); }

 private:
  MemoryDisk& disk_;
  const stage::Config& file_;
  std::unique_ptr<Journal> journal_;
  stage::RuleBook book_{&stage::plain_rule};
};

struct Tally {
  int accepted = 0;
  int refused = 0;
  int cuts = 0;
  int faults = 0;
  int found_undone = 0;
};

// Ends what is due, in the book and in the model.
void expire(BookOwner& program, BookModel& model, WallTime now) {
  while (const auto due = program.book().expire(now)) {
    ASSERT_TRUE(program.run(*due));
    model.expire(now);
  }
}

void live_through(std::uint64_t seed, Tally& tally) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  MemoryDisk disk;
  const stage::Config file;
  BookOwner program(disk, file);
  Steps steps(seed);
  BookModel model;
  WallTime now = WallTime(std::chrono::seconds(1'800'000'000));
  for (int round = 0; round < 250; ++round) {
    now = later(now, steps.below(4));
    expire(program, model, now);
    const Step step = steps.next(model, now);
    ASSERT_EQ(program.would_run(step.operation), step.accepted)
        << "round " << round << ", " << stage::command_of(step.operation);
    const std::uint64_t trouble = steps.below(10);
    const std::uint64_t call = disk.calls() + 1 + steps.below(3);
    if (trouble == 0) disk.cut_power_at(call, steps.below(300));
    if (trouble == 1) disk.fail_call(call, {.error = ENOSPC, .bytes = steps.below(300)});
    bool was_cut = false;
    try {
      if (program.run(step.operation)) {
        model = step.after;
        ++tally.accepted;
      } else {
        ++(step.accepted ? tally.faults : tally.refused);
      }
      if (steps.below(40) == 0 || program.wants_shrinking()) program.shrink();
    } catch (const PowerCut&) {
      was_cut = true;
      ++tally.cuts;
    }
    disk.stop_failing();
    const bool starts_again = was_cut || steps.below(20) == 0;
    if (starts_again) {
      disk.restart(steps.below(2) == 0, steps.below(2) == 0);
      program.start();
      const BookModel found = BookModel::of(program.book(), step.after);
      // The operation that was cut short may be there: no caller was told that it is not.
      if (was_cut && !(found == model) && step.accepted) {
        model = step.after;
        ++tally.found_undone;
      }
    }
    // Comparing whole histories takes long.
    if (!starts_again && round % 10 != 0) continue;
    ASSERT_EQ(BookModel::of(program.book(), model), model)
        << "round " << round << ", " << stage::command_of(step.operation);
  }
}

TEST(RuleBookJournal, AnyLifeGivesTheBookThatAPlainModelHas) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 12 && !testing::Test::HasFailure(); ++seed) {
    live_through(seed, tally);
  }
  EXPECT_GT(tally.accepted, 1000);
  EXPECT_GT(tally.refused, 300);
  EXPECT_GT(tally.cuts, 60);
  EXPECT_GT(tally.faults, 30);
  EXPECT_GT(tally.found_undone, 5);
}

// The book of a journal in test/data/journal. Such files are on disks: they stay readable.
stage::RuleBook book_of(const std::string& name) {
  const std::string path = test::source("test/data/journal/" + name);
  std::ifstream file(path);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(bytes.empty()) << path;
  stage::RuleBook book(&stage::plain_rule);
  const auto read = read_journal_lines(bytes);
  EXPECT_TRUE(read) << path;
  if (!read) return book;
  for (const JournalLines::Line& line : read->lines) {
    const auto replayed = book.replay(line.record);
    EXPECT_TRUE(replayed) << name << ":" << line.number << ": " << replayed.error();
  }
  return book;
}

TEST(RuleBookJournal, AJournalOnDiskIsRead) {
  const stage::RuleBook book = book_of("version2.journal");
  const stage::BookState& state = book.state();
  EXPECT_EQ(state.number, 14U);
  EXPECT_EQ(state.version, 8U);
  ASSERT_EQ(state.administrators->rules.size(), 1U);
  EXPECT_EQ(state.administrators->rules[0]->text.name, "night");
  EXPECT_EQ(state.administrators->rules[0]->text.words, std::vector<std::string>{"weight=8"});
  EXPECT_EQ(state.jobs.size(), 1U);
  EXPECT_EQ(state.jobs.at("4711[3]").job.nodes, 64U);
  EXPECT_EQ(book_of("version2_cut.journal").state().number, 13U);
}

TEST(RuleBookJournal, AJournalThatTheVersionBeforeBeganIsRead) {
  const stage::RuleBook book = book_of("version1.journal");
  EXPECT_EQ(book.state().number, 8U);
  EXPECT_EQ(book.state().administrators->rules.size(), 2U);
  EXPECT_EQ(book.state().pending->version, 5U);
}

// A day of a busy site; the test prints what it costs.
TEST(RuleBookJournal, TenThousandJobsAndAThousandRulesAreQuick) {
  using Clock = std::chrono::steady_clock;
#ifdef NDEBUG
  constexpr int kJobs = 10'000;
  constexpr int kRules = 1'000;
#else
  constexpr int kJobs = 1'000;
  constexpr int kRules = 100;
#endif
  const auto milliseconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  stage::RuleBook book(&stage::plain_rule);
  stage::Config file;
  std::vector<std::string> records;
  double slowest = 0;
  const auto run = [&](stage::BookOperation operation) {
    const auto begin = Clock::now();
    const auto change = book.prepare(std::move(operation), file);
    ASSERT_TRUE(change);
    book.commit(change->operation);
    slowest = std::max(slowest, milliseconds_since(begin));
    records.push_back(change->record);
  };
  WallTime now = WallTime(std::chrono::seconds(1'800'000'000));
  auto begin = Clock::now();
  for (int rule = 0; rule < kRules; ++rule) {
    run({.at = now,
         .who = "alice",
         .what = stage::StartRule{.rule = {.name = "rule" + std::to_string(rule),
                                           .condition = "uid=" + std::to_string(rule),
                                           .words = {"weight=4", "rate=100MiB/s"}}}});
  }
  const double rules_each = milliseconds_since(begin) / kRules;
  const double rules_slowest = std::exchange(slowest, 0);
  begin = Clock::now();
  for (int job = 0; job < kJobs; ++job) {
    run({.at = now,
         .who = "slurm",
         .what = stage::StartJob{.job = {.jobid = std::to_string(job),
                                         .clients = {"10.0.0.1", "10.0.0.2"},
                                         .uids = {1001}},
                                 .words = {"weight=2"},
                                 .until = later(now, 86'400)}});
  }
  const double jobs_each = milliseconds_since(begin) / kJobs;
  const double jobs_slowest = slowest;

  begin = Clock::now();
  stage::RuleBook again(&stage::plain_rule);
  for (const std::string& record : records) ASSERT_TRUE(again.replay(record));
  const double replayed = milliseconds_since(begin);
  EXPECT_TRUE(again.state() == book.state());

  begin = Clock::now();
  const std::string snapshot = book.snapshot();
  const double snapshot_made = milliseconds_since(begin);
  stage::RuleBook third(&stage::plain_rule);
  begin = Clock::now();
  ASSERT_TRUE(third.replay(snapshot));
  const double snapshot_read = milliseconds_since(begin);
  EXPECT_TRUE(third.state() == book.state());

  begin = Clock::now();
  ASSERT_EQ(book.next_deadline(), later(now, 86'400));
  const double deadline = milliseconds_since(begin);

  stage::Composer composer(&stage::plain_rule);
  (void)composer.compose(file, book.state());
  run({.at = now, .who = "alice", .what = stage::StopRule{"rule7"}});
  begin = Clock::now();
  EXPECT_EQ(composer.compose(file, book.state()).config.rules.size(), kJobs + kRules - 1U);
  const double composed = milliseconds_since(begin);
  std::printf(
      "rule start: %.3f ms each, slowest %.2f ms; job start: %.3f ms each, slowest %.2f ms\n"
      "replay of %zu records: %.0f ms; snapshot of %.1f MiB: %.0f ms to make, %.0f ms to read\n"
      "next deadline: %.2f ms; compose again: %.1f ms\n",
      rules_each, rules_slowest, jobs_each, jobs_slowest, records.size(), replayed,
      static_cast<double>(snapshot.size()) / (1 << 20), snapshot_made, snapshot_read, deadline,
      composed);
}

}  // namespace
}  // namespace vpfs::control
