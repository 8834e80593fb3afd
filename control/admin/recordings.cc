#include "control/admin/recordings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/wire/protocol.h"

namespace vpfs::control {
namespace {

// Words are sent as they are in memory.
static_assert(std::endian::native == std::endian::little);

// A mount has no address of its clients: "".
std::string text_of(const stage::Address& address) {
  const stage::Address::Bytes& bytes = address.bytes();
  if (address == stage::Address()) return "";
  constexpr std::array<std::uint8_t, 12> kIpv4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool is_ipv4 = std::equal(kIpv4.begin(), kIpv4.end(), bytes.begin());
  std::array<char, INET6_ADDRSTRLEN> text = {};
  ::inet_ntop(is_ipv4 ? AF_INET : AF_INET6, bytes.data() + (is_ipv4 ? kIpv4.size() : 0),
              text.data(), text.size());
  return text.data();
}

Error invalid(std::string place, std::string text) {
  return make_error(Error::INVALID, std::move(place), std::move(text));
}

// Copies the next few of those from number `first` on; returns whether there are more for a reply.
template <typename Value>
bool copy_some(const std::vector<Value>& all, std::size_t first, std::vector<Value>& to) {
  constexpr std::size_t kPerLock = 32;
  const std::size_t begin = std::min(first + to.size(), all.size());
  const std::size_t room = Recordings::kNamesOfAReply - to.size();
  const std::size_t count = std::min({all.size() - begin, room, kPerLock});
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(begin);
  to.insert(to.end(), from, from + static_cast<std::ptrdiff_t>(count));
  return count == kPerLock && to.size() < Recordings::kNamesOfAReply;
}

std::uint64_t seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

std::optional<std::uint64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::uint64_t kib = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return std::nullopt;
}

std::expected<RecordReply, Error> Recordings::answer(const Record& request, TimePoint now,
                                                     WallTime wall) {
  tick(now);
  switch (request.action()) {
    case Record::SHOW:
      break;
    case Record::START:
      if (auto started = start(request, now, wall); !started) {
        return std::unexpected(std::move(started.error()));
      }
      break;
    case Record::STOP:
    case Record::DROP:
      if (recorder_ == nullptr) {
        return std::unexpected(make_error(Error::NOT_FOUND, "", "there is no recording"));
      }
      end(now);
      if (request.action() == Record::DROP) recorder_.reset();
      break;
    case Record::READ:
      return read(request, now);
    default:
      return std::unexpected(invalid("action", "expected show, start, stop, drop or read"));
  }
  return described(now);
}

std::expected<void, Error> Recordings::start(const Record& request, TimePoint now, WallTime wall) {
  if (running_) {
    return std::unexpected(make_error(
        Error::EXISTS, "",
        fmt::format("a recording is running since {:%F %T} UTC: `record stop` ends it", began_)));
  }
  if (request.bytes() < kLeastBytes || request.bytes() > kMostBytes) {
    return std::unexpected(invalid("size", "expected 64 KiB to 1 GiB"));
  }
  const std::optional<std::uint64_t> available = available_();
  if (available && request.bytes() > *available / 2) {
    return std::unexpected(
        make_error(Error::UNAVAILABLE, "size",
                   fmt::format("expected at most {} MiB, half of the memory that is available here",
                               *available / 2 / 1024 / 1024)));
  }
  constexpr std::uint64_t kLongest = std::uint64_t{366} * 24 * 3600;
  const std::chrono::seconds length(std::min(request.for_seconds(), kLongest));
  try {
    recorder_.reset();
    recorder_ = std::make_unique<stage::Recorder>(
        stage::Recorder::Settings{.number = last_number_ + 1,
                                  .requests = request.bytes() / sizeof(stage::Recorded),
                                  .begin = now,
                                  .end = length.count() > 0 ? now + length : kNever,
                                  .seed = seed()});
  } catch (const std::bad_alloc&) {
    return std::unexpected(make_error(Error::UNAVAILABLE, "size", "there is no memory for it"));
  }
  ++last_number_;
  running_ = true;
  began_ = wall;
  gate_.record(recorder_.get(), now);
  spdlog::info("recording {} begins: the latest {} requests are kept", last_number_,
               recorder_->ring().capacity());
  return {};
}

void Recordings::end(TimePoint now) {
  if (!std::exchange(running_, false)) return;
  gate_.record(nullptr, now);
  ended_ = std::min(now, recorder_->settings().end);
  spdlog::info("recording {} has ended: {} requests", last_number_, recorder_->ring().written());
}

void Recordings::tick(TimePoint now) {
  if (running_ && now >= recorder_->settings().end) end(now);
}

RecordReply Recordings::described(TimePoint now) const {
  RecordReply reply;
  if (recorder_ == nullptr) return reply;
  const stage::Recorder::Settings& settings = recorder_->settings();
  reply.set_number(settings.number);
  reply.set_running(running_);
  reply.set_capacity(recorder_->ring().capacity());
  reply.set_written(recorder_->ring().written());
  reply.set_began_at(seconds_since_epoch(began_));
  reply.set_length_us(microseconds_of((running_ ? now : ended_) - settings.begin));
  if (running_ && settings.end != kNever) reply.set_left_us(microseconds_of(settings.end - now));
  return reply;
}

std::expected<RecordReply, Error> Recordings::read(const Record& request, TimePoint now) {
  if (recorder_ == nullptr || recorder_->settings().number != request.number()) {
    return std::unexpected(make_error(Error::NOT_FOUND, "number",
                                      recorder_ == nullptr
                                          ? "there is no recording: `record start` begins one"
                                          : "another recording has begun since"));
  }
  RecordReply reply = described(now);
  std::vector<stage::Recorded::Words> words;
  words.reserve(kRequestsOfAReply);
  reply.set_first(recorder_->ring().read(request.from(), kRequestsOfAReply, words));
  reply.set_requests(words.data(), words.size() * sizeof(stage::Recorded::Words));
  // After the requests, so that all that these name is there.
  std::vector<std::string> names;
  std::vector<stage::Origin> origins;
  for (bool has_more = true; has_more;) {
    gate_.inspect(now, [&](stage::Stage&, TimePoint) {
      has_more = copy_some(recorder_->names(), request.names(), names);
      has_more = copy_some(recorder_->origins(), request.origins(), origins) || has_more;
      reply.set_names_are_full(recorder_->is_full());
    });
  }
  for (std::string& each : names) reply.add_names(std::move(each));
  for (const stage::Origin& each : origins) {
    RecordOrigin& to = *reply.add_origins();
    to.set_connection(each.connection);
    to.set_client(text_of(each.client));
    to.set_jobid(each.jobid);
  }
  return reply;
}

}  // namespace vpfs::control
