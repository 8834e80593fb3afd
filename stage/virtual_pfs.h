#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/saved/saved_state.h"
#include "schedulers/scheduler.h"
#include "stage/config/config.h"
#include "stage/counters.h"
#include "stage/dense_rows.h"
#include "stage/held.h"
#include "stage/read_yield.h"
#include "stage/rules/classifier.h"

namespace vpfs::stage {

// The word of shares for the nodes of a job.
inline constexpr std::string_view kNodesWord = "nodes";

// The name and share of a virtual PFS. Immutable, so readers may keep it.
struct VirtualPfsInfo {
  std::string name;
  std::shared_ptr<const VirtualPfsConfig> declared;  // its own entry, or a template
  TimePoint finish_by = {};                          // of the share
  Bytes done_before;                                 // done bytes when the share began
  bool removed = false;                              // the configuration has it no more
  // Where its job id is known from; in_name: the part of the name.
  enum class Job : std::uint8_t { unseen, in_name, elsewhere, none };
  Job job = Job::unseen;
  std::uint8_t jobid_at = 0;
  std::uint8_t jobid_size = 0;
  std::uint32_t nodes = 0;  // of its registered job, if a template made it; 0: not known
  std::optional<std::uint32_t> job_uid;  // whose that job is, while all requests are of one job
  // Why a promise of the share cannot be kept; null: it can. So it hardly ever takes memory.
  std::shared_ptr<const std::string> refused_promise;

  // The nodes of its job are its word "nodes", unless its declaration has one.
  [[nodiscard]] Share share() const;
};

// One application's share of the data server, and its counters.
struct VirtualPfs {
  static constexpr std::uint16_t kRecent = 16;

  std::shared_ptr<const VirtualPfsInfo> info;  // shared with readers; nothing: the number is free
  std::unique_ptr<Histograms> histograms;      // once something was sent
  TimePoint last_used = {};
  std::uint32_t generation = 0;  // of the number
  std::uint32_t requests = 0;    // present ones, in any state
  // The rule of its last request.
  RuleRef last_rule;
  ReadYield read_yield;
  // Cost of the largest of some kRecent requests sent lately, about; larger ones count as the most
  // it holds.
  std::uint16_t recent_kib = 0;
  std::uint8_t last_class = 0;
  bool from_template : 1 = false;
  bool retiring : 1 = false;      // its number will be free unless it is used again
  bool in_idle_list : 1 = false;  // of Stage::find_idle()
  std::uint8_t weights : 5 = 0;   // how many its share had; counts from zero again after 32
};

// All virtual PFSes by AppId. Those of the configuration are there from the start, "default" is
// number 0; templates add more. One that a reload removes is marked; it stays until it is retired.
class VirtualPfsTable {
 public:
  VirtualPfsTable(const std::vector<VirtualPfsConfig>& declared, std::size_t most, TimePoint now);

  struct Found {
    AppId app;
    bool made;           // it is new, or back: the schedulers must learn its share
    bool other_nodes{};  // its job has another number of nodes now
  };
  // The virtual PFS of that name, made with its template's share if it is new. Names that are not
  // declared (any more) get "default", as do new ones once `most` from templates exist.
  [[nodiscard]] Found find_or_make(const Classifier::Match& match, TimePoint now);

  // Takes on another configuration; returns virtual PFSes that are new, changed or removed.
  [[nodiscard]] std::vector<AppId> reconfigure(const std::vector<VirtualPfsConfig>& declared,
                                               std::size_t most, TimePoint now);

  // Frees the number for reuse with the next generation and adds the counters to retired().
  // REQUIRES: nothing refers to it.
  void retire(AppId app);
  struct Retired {
    std::uint64_t count = 0;
    Counters counters;
    Histograms histograms;
  };
  [[nodiscard]] const Retired& retired() const { return retired_; }
  // For what one that is not there any more counts in another process.
  [[nodiscard]] Counters& retired_counters() { return retired_.counters; }

  // For a successor: a virtual PFS with its history, by name. restore() returns nothing where the
  // configuration has it no more; then its counters join those of the retired ones.
  void save(AppId app, SavedState& to);
  [[nodiscard]] std::optional<Found> restore(const SavedState& from, TimePoint now);
  // The virtual PFS of that name, unless it is removed.
  [[nodiscard]] std::optional<AppId> named(std::string_view name) const;
  void save_retired(SavedState& to);
  void restore_retired(const SavedState& from);

  // Numbers that are or were in use: 0 ... size() - 1.
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] bool is_there(AppId app) const { return rows_[app].info != nullptr; }
  [[nodiscard]] bool is_there(VirtualPfsId id) const {
    return is_there(id.app) && rows_[id.app].generation == id.generation;
  }
  [[nodiscard]] VirtualPfs& operator[](AppId app) { return rows_[app]; }
  [[nodiscard]] const VirtualPfs& operator[](AppId app) const { return rows_[app]; }
  [[nodiscard]] Counters& counters(AppId app) { return counters_[app]; }
  [[nodiscard]] const Counters& counters(AppId app) const { return counters_[app]; }
  [[nodiscard]] VirtualPfsId id_of(AppId app) const {
    return {.app = app, .generation = rows_[app].generation};
  }
  [[nodiscard]] std::vector<AppId> everybody() const;
  // The share, with its "bytes by a time" reduced by the bytes done; the wish ends with its time.
  [[nodiscard]] Share share_to_come(AppId app, TimePoint now) const;
  void set_refused_promise(AppId app, std::string why);
  // The job id that all its requests have shown so far, as far as find_or_make() saw them; "": some
  // showed another one or none. Not known of "default".
  [[nodiscard]] std::string_view jobid(AppId app) const;
  // The account of that job, if it is registered with one.
  [[nodiscard]] std::string_view account(AppId app) const;
  // How many new virtual PFSes were refused.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  using Declared = std::shared_ptr<const VirtualPfsConfig>;

  [[nodiscard]] Declared declaration_of(const VirtualPfsInfo& info) const;
  AppId add(const std::string& name, const Declared& declared, TimePoint now);
  // Takes on what a request that belongs to it shows of its job. Returns whether the nodes changed.
  bool learn_job(AppId app, const Classifier::Match& match);
  void note_job(AppId app, VirtualPfsInfo& info, const std::string& jobid);
  // Begins another share.
  void set_info(AppId app, const Declared& declared, bool removed, TimePoint now);
  void replace_info(AppId app, VirtualPfsInfo info);

  DenseRows<VirtualPfs> rows_;
  DenseRows<Counters> counters_;
  std::vector<AppId> free_;
  std::map<std::string_view, AppId> by_name_;              // the keys are those of the infos
  std::map<std::string, Declared, std::less<>> declared_;  // templates too
  // Job ids that are not part of names.
  std::map<AppId, std::string> other_jobids_;
  std::map<AppId, std::string> accounts_;
  std::size_t most_ = 0;            // from templates
  std::size_t from_templates_ = 0;  // that there are
  std::uint64_t refused_ = 0;
  Retired retired_;
};

}  // namespace vpfs::stage
