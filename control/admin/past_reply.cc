#include "control/admin/past_reply.h"

#include "base/clock.h"
#include "stage/history/measures.h"

namespace vpfs::control {
namespace {

using stage::Measure;

void fill(PastOf& to, const stage::Measures& sums) {
  to.set_read_bytes(sums.of(Measure::read_bytes));
  to.set_written_bytes(sums.of(Measure::written_bytes));
  to.set_operations(sums.of(Measure::operations));
  to.set_arrivals(sums.of(Measure::arrivals));
  to.set_cost(sums.of(Measure::cost));
  to.set_waited_us(sums.of(Measure::waited));
  to.set_served_us(sums.of(Measure::served));
  to.set_held_limit_us(sums.of(Measure::held_by_limit));
  to.set_held_share_us(sums.of(Measure::held_by_share));
  to.set_held_kept_us(sums.of(Measure::held_by_kept_slot));
  to.set_held_depth_us(sums.of(Measure::held_by_depth));
  to.set_held_class_us(sums.of(Measure::held_by_class));
  to.set_held_client_us(sums.of(Measure::slow_client));
  to.set_longest_wait_us(sums.of(Measure::longest_wait));
  to.set_queued_bytes(sums.of(Measure::queued));
}

void fill(PastOf& to, const insight::PastOf& from) {
  to.set_name(from.name);
  to.set_jobid(from.jobid);
  for (const std::string& rule : from.rules) {
    if (!rule.empty()) to.add_rules(rule);
  }
  to.set_weight(from.share.weight);
  to.set_rate(from.share.rate.count);
  to.set_min(from.share.min.count);
  fill(to, from.sums);
  to.set_active_us(microseconds_of(from.active));
  to.set_wanted_cost(from.wanted);
  to.set_entitled_cost(from.entitled);
  to.set_wanted_all_us(microseconds_of(from.wanted_all));
  to.set_first_at(seconds_since_epoch(from.first));
  to.set_last_at(seconds_since_epoch(from.last));
}

void fill(SeriesLine& to, const insight::Series::Line& from) {
  to.set_name(from.name);
  for (const stage::Measures& at : from.at) {
    to.add_read_bytes(at.of(Measure::read_bytes));
    to.add_written_bytes(at.of(Measure::written_bytes));
    to.add_operations(at.of(Measure::operations));
    to.add_waited_us(at.of(Measure::waited));
    to.add_served_us(at.of(Measure::served));
    to.add_held_limit_us(at.of(Measure::held_by_limit));
    to.add_held_share_us(at.of(Measure::held_by_share));
    to.add_held_kept_us(at.of(Measure::held_by_kept_slot));
    to.add_held_depth_us(at.of(Measure::held_by_depth));
    to.add_held_class_us(at.of(Measure::held_by_class));
    to.add_held_client_us(at.of(Measure::slow_client));
    to.add_longest_wait_us(at.of(Measure::longest_wait));
    to.add_queued_bytes(at.of(Measure::queued));
  }
}

}  // namespace

void fill(SeriesReply& reply, const insight::Series& series) {
  for (const insight::Series::Point& point : series.points) {
    reply.add_begin_at(seconds_since_epoch(point.begin));
    reply.add_length_us(microseconds_of(point.length));
  }
  for (const insight::Series::Line& line : series.lines) fill(*reply.add_lines(), line);
  fill(*reply.mutable_others(), series.others);
}

bool is_named(std::string_view text, const insight::PastOf& who) {
  return !text.empty() && (who.name == text || who.jobid == text);
}

void fill(PastReply& reply, const insight::Past& past, const PastChoice& choice) {
  reply.set_from_at(seconds_since_epoch(past.begin));
  reply.set_to_at(seconds_since_epoch(past.end));
  reply.set_length_us(microseconds_of(past.length));
  reply.set_first_rules(past.first_rules);
  reply.set_last_rules(past.last_rules);
  reply.set_cost(past.cost);
  stage::Measures others = past.others;
  std::size_t unasked = 0;
  for (const insight::PastOf& each : past.of) {
    const bool may_be_seen = choice.may_be_seen(each);
    const bool is_asked = may_be_seen && choice.is_asked(each);
    if (!may_be_seen || (!is_asked && unasked++ >= choice.most)) {
      others.merge(each.sums);
      continue;
    }
    PastOf& to = *reply.add_virtual_pfs();
    fill(to, each);
    to.set_asked(is_asked);
  }
  fill(*reply.mutable_others(), others);
}

}  // namespace vpfs::control
