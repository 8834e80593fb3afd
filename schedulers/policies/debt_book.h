#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedulers/flow_tournament.h"
#include "schedulers/start_tag.h"
#include "schedulers/time_tag.h"

namespace vpfs {

// What flows owe for service elsewhere, by its reports and by what was charged in advance
// (docs/schedulers.md, "Total-service sharing"). It also has the heads that are held for a debt, by
// when that ends. Tags are their owner's. Allocates in grow() only.
class DebtBook {
 public:
  using Tag = StartTag::Tag;

  // How many reports of service elsewhere a debt may be.
  static constexpr Cost kMostReports = 4;

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(rows_.size()); }
  void grow(std::size_t flows) {
    rows_.resize(flows);
    holding_.grow(flows);
  }

  // REQUIRES (all that follow): grow() was called for the flow.
  void forget(std::uint32_t flow) { rows_[flow] = {}; }
  // The part of the flow's tag that is a debt.
  [[nodiscard]] Tag owed(std::uint32_t flow) const { return rows_[flow].owed; }
  void owe(std::uint32_t flow, Tag owed) { rows_[flow].owed = owed; }
  // The most that it may be for service elsewhere.
  [[nodiscard]] Tag most(std::uint32_t flow) const { return rows_[flow].most; }

  // For how long a debt may hold a head: the time that was reported, or `least` if that is longer.
  void set_reported_delay(std::uint32_t flow, Duration delay);
  void set_delay(std::uint32_t flow, Duration least) {
    rows_[flow].delay = std::max(rows_[flow].reported_delay, least);
  }
  // The debt begins to hold the flow's head, which passes at `passes` in any case.
  void begin_hold(std::uint32_t flow, TimePoint passes, TimePoint now) {
    rows_[flow].due = std::min(now + rows_[flow].delay, passes);
  }
  // The same of a head that is held: it may pass earlier.
  void shorten_hold(std::uint32_t flow, TimePoint passes, TimePoint now) {
    rows_[flow].due = std::min({rows_[flow].due, now + rows_[flow].delay, passes});
  }
  [[nodiscard]] bool holds(std::uint32_t flow, TimePoint now) const {
    return rows_[flow].due > now;
  }
  // The head is among those that are held, or is not any more.
  [[nodiscard]] bool is_held(std::uint32_t flow) const { return holding_.contains(flow); }
  void hold(std::uint32_t flow, std::uint64_t order) {
    holding_.put(flow, {.tag = time_tag(rows_[flow].due), .order = order});
  }
  void release(std::uint32_t flow) { holding_.erase(flow); }
  [[nodiscard]] const FlowTournament& holding() const { return holding_; }

  // Takes a report. True: enough has come together to be counted; then the caller calls count().
  [[nodiscard]] bool take_report(std::uint32_t flow, Cost elsewhere);
  // What the reports since the last count() add up to.
  [[nodiscard]] Cost reported(std::uint32_t flow) const { return rows_[flow].span.elsewhere; }
  // What corrects the tag; one of them is zero.
  struct Correction {
    Tag more = 0;
    Tag back = 0;  // no more than what is owed
  };
  // `reported` as the tag moves by it. `owed`: the debt until now.
  [[nodiscard]] Correction count(std::uint32_t flow, Tag reported, Tag owed);

  // A request was sent that moves the tag by `amount`. Returns what to charge beside it, for what
  // the flow gets elsewhere meanwhile. `room`: how much the debt may grow beyond most().
  [[nodiscard]] Tag charge_in_advance(std::uint32_t flow, Cost cost, Tag amount, Tag owed,
                                      Tag room);

  // REQUIRES: grow() was called for the flow. The head that a debt holds is its owner's.
  template <typename Archive>
  void archive_flow(std::uint32_t flow, Archive& fields) {
    fields("debt", rows_[flow]);
  }

 private:
  // What was sent here, and charged for it in advance.
  struct Sent {
    Cost own = 0;
    Tag charged = 0;

    template <typename Archive>
    void archive(Archive& fields) {
      fields("own", own);
      fields("charged", charged);
    }
  };
  // Reports are put together until they are about some requests. With what was sent in their time.
  struct Span : Sent {
    Cost elsewhere = 0;

    template <typename Archive>
    void archive(Archive& fields) {
      Sent::archive(fields);
      fields("elsewhere", elsewhere);
    }
  };
  struct Row {
    Tag owed = 0;
    Tag most = 0;
    Duration delay = {};
    Duration reported_delay = {};
    TimePoint due = {};  // when the debt stops holding the present head
    Sent sent;           // since the last report
    Sent before;         // between the last two
    Cost request = 1;    // the last one
    Span span;
    Span lately;              // of the last spans, the older ones with less weight
    Tag reported_lately = 0;  // service elsewhere, like `charged` of the same spans
    std::uint64_t ratio = 0;  // of service elsewhere to service here, fixed point
    Tag overcharged = 0;      // that could not be given back; less is charged until it is gone
    bool has_report = false;
    std::uint8_t learning = 0;  // spans, the present one included, that only teach the ratio

    template <typename Archive>
    void archive(Archive& fields) {
      fields("owed", owed);
      fields("most", most);
      fields("delay", delay);
      fields("reported_delay", reported_delay);
      fields("due", due);
      fields("sent", sent);
      fields("before", before);
      fields("request", request);
      fields("span", span);
      fields("lately", lately);
      fields("reported_lately", reported_lately);
      fields("ratio", ratio);
      fields("overcharged", overcharged);
      fields("has_report", has_report);
      fields("learning", learning);
      if constexpr (Archive::kReads) request = std::clamp<Cost>(request, 1, kMaxCost);
    }

    void close_span(Tag reported);
    // Whether what is charged in advance is what is reported, by and large.
    [[nodiscard]] bool is_charged_well() const {
      return lately.own > 0 && lately.charged >= reported_lately - reported_lately / 8;
    }
  };

  std::vector<Row> rows_;
  FlowTournament holding_;  // flows that a debt holds, by its end
};

}  // namespace vpfs
