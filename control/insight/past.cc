#include "control/insight/past.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "control/allocation/max_min.h"
#include "control/insight/entitlement.h"

namespace vpfs::insight {
namespace {

using stage::Measure;
using stage::Measures;

// A piece has ten seconds. Spans end by a timer, so ten of a second may be a little short.
constexpr Duration kNearlyAPiece = std::chrono::milliseconds(9500);

class Reader {
 public:
  explicit Reader(const stage::History& history)
      : history_(history), numbered_(stage::HistoryNames::kMost, kNobody) {}

  void add(const stage::HistorySpan& span, const std::vector<stage::HistoryRow>& rows) {
    const bool is_first = past_.length == Duration::zero();
    if (is_first) {
      past_.begin = span.begin;
      past_.first_rules = span.rules;
    }
    past_.end = span.end;
    past_.length += span.length;
    past_.last_rules = span.rules;
    past_.cost += span.cost;
    piece_ += span.length;
    ++spans_;
    for (const stage::HistoryRow& row : rows) add(span, row);
    if (piece_ >= kNearlyAPiece) end_piece();
  }

  Past take() {
    // The rest is judged too if there is nothing else.
    if (piece_ > Duration::zero()) end_piece();
    std::ranges::sort(past_.of, [](const PastOf& one, const PastOf& other) {
      const Cost cost = one.sums.of(Measure::cost);
      const Cost others_cost = other.sums.of(Measure::cost);
      return cost != others_cost ? cost > others_cost : one.name < other.name;
    });
    return std::move(past_);
  }

 private:
  static constexpr std::size_t kNobody = ~std::size_t{0};

  void add(const stage::HistorySpan& span, const stage::HistoryRow& row) {
    const stage::HistoryName* const name = history_.name(row, span);
    if (name == nullptr) {
      past_.others.add(row.measures);
      others_of_piece_ += row.measures.of(Measure::cost);
      return;
    }
    const std::size_t index = index_of(row.name, *name, span);
    PastOf& who = past_.of[index];
    who.sums.add(row.measures);
    Piece& piece = pieces_[index];
    if (piece.length == Duration::zero()) in_piece_.push_back(index);
    piece.sums.add(row.measures);
    const std::uint64_t queued = row.measures.of(Measure::queued);
    // It has several rows of a span if its share or the rule of its requests was another one.
    if (std::exchange(piece.span, spans_) == spans_) {
      piece.queued = std::max(piece.queued, queued);
      return;
    }
    who.active += span.length;
    who.last = span.end;
    piece.length += span.length;
    piece.queued = queued;
  }

  std::size_t index_of(stage::HistoryNames::Number number, const stage::HistoryName& name,
                       const stage::HistorySpan& span) {
    std::size_t& index = numbered_[number];
    if (index != kNobody) return index;
    const auto [known, is_new] = by_name_.try_emplace(name.info->name, past_.of.size());
    index = known->second;
    if (is_new) {
      past_.of.push_back({.name = name.info->name, .first = span.begin});
      pieces_.emplace_back();
    }
    PastOf& who = past_.of[index];
    if (is_new) {
      who.jobid = name.jobid;
      who.job_uid = name.info->job_uid;
    }
    if (who.jobid != name.jobid) who.jobid.clear();
    if (who.job_uid != name.info->job_uid) who.job_uid.reset();
    if (name.info->declared != nullptr) who.share = name.info->share();
    if (name.rule != nullptr && std::ranges::find(who.rules, *name.rule) == who.rules.end()) {
      who.rules.push_back(*name.rule);
    }
    return index;
  }

  void end_piece() {
    std::vector<Wish> wishes;
    Cost sent = 0;
    for (const std::size_t index : in_piece_) {
      Measures sums = pieces_[index].sums;
      sums.of(Measure::queued) = pieces_[index].queued;
      wishes.push_back(wish_of(sums, past_.of[index].share, piece_));
      sent += sums.of(Measure::cost);
    }
    std::vector<Cost> got(wishes.size());
    entitle(sent, wishes, got);
    for (std::size_t i = 0; i < in_piece_.size(); ++i) {
      PastOf& who = past_.of[in_piece_[i]];
      const bool wants_all = wishes[i].demand == allocation::kUnbounded;
      who.wanted += wants_all ? sent + others_of_piece_ : wishes[i].demand;
      who.entitled += got[i];
      if (wants_all) who.wanted_all += pieces_[in_piece_[i]].length;
      pieces_[in_piece_[i]] = {};
    }
    in_piece_.clear();
    others_of_piece_ = 0;
    piece_ = Duration::zero();
  }

  struct Piece {
    Measures sums;
    Duration length = {};
    std::uint64_t queued = 0;  // at its end
    std::uint64_t span = 0;    // the last one with a row of it
  };

  const stage::History& history_;
  Past past_;
  std::vector<std::size_t> numbered_;  // in past_.of, by the number of a name
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<Piece> pieces_;  // as past_.of
  std::vector<std::size_t> in_piece_;
  Cost others_of_piece_ = 0;
  std::uint64_t spans_ = 0;
  Duration piece_ = {};
};

}  // namespace

Past past_of(const stage::History& history, WallTime from, WallTime to) {
  Reader reader(history);
  history.read(from, to,
               [&](const stage::HistorySpan& span, const std::vector<stage::HistoryRow>& rows) {
                 reader.add(span, rows);
               });
  return reader.take();
}

}  // namespace vpfs::insight
