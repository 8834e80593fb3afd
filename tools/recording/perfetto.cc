#include "tools/recording/perfetto.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/recording/perfetto.pb.h"

namespace vpfs::recording {
namespace {

using perfetto::Trace;
using perfetto::TracePacket;
using perfetto::TrackEvent;
using stage::Recorded;

constexpr std::uint32_t kSequence = 1;
constexpr std::uint64_t kWaiting = 1;  // tracks
constexpr std::uint64_t kAtServer = 2;
constexpr std::uint64_t kFirstVirtualPfs = 16;

// Slices of one track nest. So requests of one virtual PFS that overlap are in
// rows of their own.
class Rows {
 public:
  // The row of a request; requests come by their arrivals.
  std::size_t take(TimePoint begin, TimePoint end) {
    while (!busy_.empty() && busy_.begin()->first <= begin) {
      free_.insert(busy_.begin()->second);
      busy_.erase(busy_.begin());
    }
    std::size_t row = rows_;
    if (free_.empty()) {
      ++rows_;
    } else {
      row = *free_.begin();
      free_.erase(free_.begin());
    }
    busy_.emplace(end, row);
    return row;
  }
  [[nodiscard]] std::size_t size() const { return rows_; }

 private:
  std::size_t rows_ = 0;
  std::multimap<TimePoint, std::size_t> busy_;  // by their ends
  std::set<std::size_t> free_;
};

class Writer {
 public:
  Writer(const Recording& recording, const Sink& sink) : recording_(recording), sink_(sink) {
    // Times of a trace are not negative.
    for (const Recorded& each : recording.requests) first_ = std::min(first_, arrival(each));
  }

  void write() {
    describe(kWaiting, 0, "requests that wait", true);
    describe(kAtServer, 0, "requests at the server", true);
    for (std::size_t i = 0; i < recording_.names.size(); ++i) {
      const std::string& name = recording_.names[i];
      describe(kFirstVirtualPfs + i, 0, name.empty() ? "(others)" : name, false);
    }
    write_requests();
    write_counters();
    flush();
  }

 private:
  void describe(std::uint64_t track, std::uint64_t parent, const std::string& name,
                bool is_counter) {
    TracePacket& packet = add();
    perfetto::TrackDescriptor& made = *packet.mutable_track_descriptor();
    made.set_uuid(track);
    made.set_name(name);
    if (parent != 0) made.set_parent_uuid(parent);
    if (is_counter) made.mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_COUNT);
  }

  void write_requests() {
    std::vector<const Recorded*> by_arrival;
    for (const Recorded& each : recording_.requests) by_arrival.push_back(&each);
    std::ranges::sort(by_arrival, {},
                      [](const Recorded* each) { return std::pair(arrival(*each), each); });
    std::vector<Rows> rows(recording_.names.size());
    std::uint64_t next_track = kFirstVirtualPfs + recording_.names.size();
    std::map<std::pair<std::uint32_t, std::size_t>, std::uint64_t> tracks;
    for (const Recorded* each : by_arrival) {
      const std::size_t row = rows[each->virtual_pfs].take(arrival(*each), end(*each));
      const auto [track, is_new] =
          tracks.try_emplace(std::pair(each->virtual_pfs, row), next_track);
      if (is_new) {
        describe(next_track++, kFirstVirtualPfs + each->virtual_pfs, recording_.name_of(*each),
                 false);
      }
      write_request(*each, track->second);
    }
  }

  void write_request(const Recorded& request, std::uint64_t track) {
    TrackEvent& whole = begin(track, arrival(request), std::string(word_of(request.kind)));
    const Origin& origin = recording_.origin_of(request);
    note(whole, "bytes", request.asked);
    if (request.moved != request.asked) note(whole, "moved", request.moved);
    if (request.end != stage::RecordedEnd::done) note(whole, "end", word_of(request.end));
    if (!origin.client.empty()) note(whole, "client", origin.client);
    note(whole, "connection", origin.connection);
    if (!origin.jobid.empty()) note(whole, "job", origin.jobid);
    if (request.uid != Recorded::kNoUser) note(whole, "uid", request.uid);
    if (request.file != 0) note(whole, "file", fmt::format("{:016x}", request.file));
    if (request.offset != Recorded::kNoOffset) note(whole, "offset", request.offset);
    if (request.wait > 0) {
      TrackEvent& wait = begin(track, arrival(request), "waits");
      if (request.reason != stage::RecordedReason::nothing) {
        note(wait, "held by", word_of(request.reason));
      }
      finish(track, sent(request));
    }
    if (request.service > 0) {
      (void)begin(track, sent(request), "at the server");
      finish(track, vpfs::recording::end(request));
    }
    finish(track, vpfs::recording::end(request));
  }

  void write_counters() {
    std::vector<std::pair<TimePoint, int>> waiting;
    std::vector<std::pair<TimePoint, int>> at_server;
    for (const Recorded& each : recording_.requests) {
      waiting.emplace_back(arrival(each), 1);
      waiting.emplace_back(sent(each), -1);
      at_server.emplace_back(sent(each), 1);
      at_server.emplace_back(vpfs::recording::end(each), -1);
    }
    write_counter(kWaiting, std::move(waiting));
    write_counter(kAtServer, std::move(at_server));
  }

  void write_counter(std::uint64_t track, std::vector<std::pair<TimePoint, int>> changes) {
    std::ranges::sort(changes);
    std::int64_t value = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      value += changes[i].second;
      if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first) continue;
      TrackEvent& event = at(changes[i].first, track, TrackEvent::TYPE_COUNTER);
      event.set_counter_value(value);
    }
  }

  TrackEvent& begin(std::uint64_t track, TimePoint when, const std::string& name) {
    TrackEvent& event = at(when, track, TrackEvent::TYPE_SLICE_BEGIN);
    event.set_name(name);
    event.add_categories("request");
    return event;
  }
  void finish(std::uint64_t track, TimePoint when) {
    (void)at(when, track, TrackEvent::TYPE_SLICE_END);
  }
  TrackEvent& at(TimePoint when, std::uint64_t track, TrackEvent::Type type) {
    TracePacket& packet = add();
    packet.set_timestamp(static_cast<std::uint64_t>((when - first_).count()));
    TrackEvent& event = *packet.mutable_track_event();
    event.set_type(type);
    event.set_track_uuid(track);
    return event;
  }
  static perfetto::DebugAnnotation& note(TrackEvent& event, std::string_view name) {
    perfetto::DebugAnnotation& made = *event.add_debug_annotations();
    made.set_name(std::string(name));
    return made;
  }
  static void note(TrackEvent& event, std::string_view name, std::uint64_t value) {
    note(event, name).set_uint_value(value);
  }
  static void note(TrackEvent& event, std::string_view name, std::string_view value) {
    note(event, name).set_string_value(std::string(value));
  }

  // A trace may be cut into parts, each of which is one.
  TracePacket& add() {
    constexpr int kPacketsAtOnce = 1024;
    if (trace_.packet_size() >= kPacketsAtOnce) flush();
    TracePacket& packet = *trace_.add_packet();
    packet.set_trusted_packet_sequence_id(kSequence);
    return packet;
  }
  void flush() {
    sink_(trace_.SerializeAsString());
    trace_.Clear();
  }

  const Recording& recording_;
  const Sink& sink_;
  TimePoint first_ = {};
  Trace trace_;
};

}  // namespace

void write_perfetto(const Recording& recording, const Sink& sink) {
  Writer(recording, sink).write();
}

}  // namespace vpfs::recording
