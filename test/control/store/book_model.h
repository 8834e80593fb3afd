#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stage/book/changes.h"
#include "stage/book/rule_book.h"

namespace vpfs::control {

// What a rule book should do, in the plainest words: every version is a whole copy.
struct BookModel {
  using Until = std::optional<WallTime>;
  struct Rule {
    std::string name;
    std::string words;
    Until until;
    WallTime since;
    bool operator==(const Rule&) const = default;
  };
  struct Set {
    std::vector<Rule> rules;
    std::string default_words;  // "": not changed
    Until default_until;
    WallTime default_since = {};
    bool operator==(const Set&) const = default;
  };
  struct Job {
    std::string words;
    Until until;
    bool operator==(const Job&) const = default;
  };

  std::vector<Set> versions = {Set()};  // from 0
  std::map<std::string, Job> jobs;
  std::vector<Rule> site;  // the coordinator's rules
  std::map<std::string, Until> site_jobs;
  bool bypass = false;
  Until bypass_until;
  std::optional<std::pair<WallTime, std::size_t>> pending;  // deadline, version

  [[nodiscard]] const Set& set() const { return versions.back(); }
  [[nodiscard]] bool has_rule(const std::string& name) const {
    for (const Rule& rule : set().rules) {
      if (rule.name == name) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_site_rule(const std::string& name) const {
    for (const Rule& rule : site) {
      if (rule.name == name) return true;
    }
    return false;
  }
  [[nodiscard]] bool knows(std::size_t version) const {
    return version == 0 ||
           (version < versions.size() && version + stage::kMostHistory + 1 >= versions.size());
  }
  void add_version(Set made) {
    if (!(made == set())) versions.push_back(std::move(made));
  }

  static bool over(const Until& until, WallTime now) { return until && *until <= now; }
  static Set running(Set from, WallTime now) {
    std::erase_if(from.rules, [&](const Rule& rule) { return over(rule.until, now); });
    if (over(from.default_until, now)) {
      from.default_words = "";
      from.default_until.reset();
      from.default_since = {};
    }
    return from;
  }
  void expire(WallTime now) {
    Set made = set();
    if (pending && pending->first <= now) {
      made = versions[pending->second];
      pending.reset();
    }
    add_version(running(made, now));
    std::erase_if(jobs, [&](const auto& job) { return over(job.second.until, now); });
    std::erase_if(site, [&](const Rule& rule) { return over(rule.until, now); });
    std::erase_if(site_jobs, [&](const auto& job) { return over(job.second, now); });
    if (over(bypass_until, now)) {
      bypass = false;
      bypass_until.reset();
    }
  }

  bool operator==(const BookModel&) const = default;

  // What the book has of all this. Versions that it has forgotten are taken from `known`.
  [[nodiscard]] static BookModel of(const stage::RuleBook& book, const BookModel& known) {
    const stage::BookState& state = book.state();
    BookModel made;
    made.versions.assign(known.versions.begin(), known.versions.end());
    made.versions.resize(state.version + 1);
    for (const stage::HistoryEntry& entry : state.history) {
      Set& copy = made.versions[entry.version] = {};
      for (const auto& rule : entry.set->rules) {
        copy.rules.push_back({rule->text.name, joined(rule->text.words), rule->until, rule->since});
      }
      for (const auto& share : entry.set->shares) {
        copy.default_words = joined(share->words);
        copy.default_until = share->until;
        copy.default_since = share->since;
      }
    }
    for (const auto& [id, job] : state.jobs) {
      made.jobs[id] = {job.rule ? joined(job.rule->text.words) : "", job.until};
    }
    for (const auto& rule : state.coordinators) {
      made.site.push_back({rule->text.name, joined(rule->text.words), rule->until, rule->since});
    }
    for (const auto& [id, job] : state.site_jobs) made.site_jobs[id] = job.until;
    made.bypass = state.bypass.on;
    made.bypass_until = state.bypass.until;
    if (state.pending) made.pending = {state.pending->deadline, state.pending->version};
    return made;
  }

  static std::string joined(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += word + " ";
    return all;
  }
};

}  // namespace vpfs::control
