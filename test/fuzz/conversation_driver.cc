#include "test/fuzz/conversation_driver.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "test/fuzz/require.h"

namespace vpfs::test {
namespace {

// What a conversation may have allocated: so much, and so much more for each byte that came.
constexpr std::size_t kMemory = std::size_t{64} * 1024;
constexpr std::size_t kMemoryPerByte = 64;
// Bytes that are shown unasked.
constexpr std::size_t kWindow = 1024;
constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

const char* name(Sender from) {
  return from == Sender::client ? "client" : "server";
}

const char* name(Step::Action action) {
  switch (action) {
    case Step::Action::need_more:
      return "need_more";
    case Step::Action::forward:
      return "forward";
    case Step::Action::hold:
      return "hold";
    case Step::Action::discard:
      return "discard";
    case Step::Action::wait:
      return "wait";
    case Step::Action::lost_framing:
      return "lost_framing";
  }
  return "no action";
}

template <typename Value>
std::string text(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

std::string text(const std::optional<FinishedIo>& io) {
  if (!io) return "-";
  return fmt::format("{} bytes={} failed={} file={} size={}", io->key, io->bytes, io->failed,
                     io->file, text(io->file_size));
}

bool same(const Step& left, const Step& right) {
  return left.action == right.action && left.size == right.size;
}

bool erase(std::vector<IoKey>& keys, IoKey key) {
  return std::erase(keys, key) > 0;
}

}  // namespace

void ConversationDriver::arrive(Sender from, std::span<const std::byte> bytes, std::size_t piece) {
  Stream& own = stream(from);
  own.bytes.insert(own.bytes.end(), bytes.begin(), bytes.end());
  while (own.here < own.bytes.size() && !closed_) {
    own.here += std::min(piece, own.bytes.size() - own.here);
    if (!own.waits) pump(from);
  }
}

bool ConversationDriver::is_outstanding(IoKey key) const {
  return std::ranges::find(outstanding_, key) != outstanding_.end();
}

bool ConversationDriver::has_passed(Sender from, std::uint64_t offset) const {
  return stream(from).at >= offset && stream(from).here >= offset;
}

void ConversationDriver::pump(Sender from) {
  Stream& own = stream(from);
  const Sender other = from == Sender::client ? Sender::server : Sender::client;
  while (!closed_) {
    if (own.at > own.here) return;
    own.ends.reset();
    Step step = look(from, kWindow);
    if (step.action == Step::Action::need_more && step.size <= own.here - own.at) {
      step = look(from, static_cast<std::size_t>(step.size));
      require(step.action != Step::Action::need_more || step.size > own.here - own.at,
              "asks again for what it has been shown");
    }
    if (step.action == Step::Action::need_more) return;
    if (step.action == Step::Action::wait) {
      own.waits = true;
      return;
    }
    log_.push_back(fmt::format("{} {} {} at {} ends {}", name(from), name(step.action), step.size,
                               own.at, text(step.finished)));
    if (step.action == Step::Action::lost_framing) {
      require(!conversation_->problem().empty(), "framing is lost without a reason");
      closed_ = true;
      return;
    }
    if (step.action == Step::Action::hold) hold(step);
    own.at += step.size;
    if (step.finished) finish(own, *step.finished);
    require(conversation_->data_from_client() <= stream(Sender::client).at,
            "more file data than the client sent");
    go_on(other);
  }
}

Step ConversationDriver::look(Sender from, std::size_t window) {
  const Stream& own = stream(from);
  const auto at = static_cast<std::ptrdiff_t>(own.at);
  const std::size_t here = std::min(own.here - static_cast<std::size_t>(own.at), window);
  shown_ = {own.bytes.begin() + at, own.bytes.begin() + at + static_cast<std::ptrdiff_t>(here)};
  shown_.shrink_to_fit();
  Step step;
  {
    const MemoryWatch::Section section(memory_);
    step = conversation_->next(from, shown_);
    if (step.action == Step::Action::need_more || step.action == Step::Action::wait) {
      require(same(conversation_->next(from, shown_), step), "a second look gives another step");
    }
  }
  check_memory();
  check_size(from, step, here);
  return step;
}

void ConversationDriver::check_size(Sender from, const Step& step, std::size_t here) const {
  switch (step.action) {
    case Step::Action::need_more:
      require(step.size > here, "asks for what is here");
      require(step.size <= Conversation::kMostNeeded, "asks for more than it may");
      break;
    case Step::Action::forward:
    case Step::Action::discard:
      require(step.size > 0, "passes nothing on");
      require(step.size <= kLargest, "a message of impossible size");
      break;
    case Step::Action::hold:
      require(from == Sender::client, "holds what the server says");
      require(step.size > 0 && step.size <= here, "holds what is not here");
      break;
    case Step::Action::wait:
      require(from == Sender::client, "the server's stream waits");
      break;
    case Step::Action::lost_framing:
      break;
  }
  require(!step.finished || step.action == Step::Action::forward, "an end without a message");
}

void ConversationDriver::hold(const Step& step) {
  const IoDescription& io = conversation_->held();
  require(std::ranges::find(held_, io.key) == held_.end(), "holds an I/O that is held");
  require(std::ranges::find(outstanding_, io.key) == outstanding_.end(),
          "holds an I/O that is outstanding");
  require(io.bytes <= kLargest, "an I/O of impossible size");
  if (io.may_be_short && io.file != 0) {
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{4096}, kLargest, ~0UL}) {
      require(conversation_->held_bytes_of(size) <= io.bytes, "a file's end makes a read longer");
    }
  }
  require(conversation_->moved(io.key) == 0, "has moved before it is released");
  log_.push_back(fmt::format(
      "io {} kind={} bytes={} fs={} uid={} node={} target={} device={} owner={} dir={} file={} "
      "fingerprint={} short={} file={} job={} first={}",
      io.key, std::to_underlying(io.kind), io.bytes, io.file_system, text(io.uid), text(io.node),
      text(io.target), text(io.device), text(io.owner), io.directory, io.open_file, io.fingerprint,
      io.may_be_short, io.file, text(conversation_->held_hint("jobid")),
      static_cast<unsigned>(shown_[static_cast<std::size_t>(step.size) - 1])));
  // A session closes the connection of a client that uses the tag of an I/O whose last bytes are on
  // their way to it.
  cut_short_ = stream(Sender::server).ends == io.key;
  closed_ = closed_ || cut_short_;
  held_.push_back(io.key);
}

void ConversationDriver::finish(Stream& own, const FinishedIo& io) {
  require(io.bytes <= kLargest, "an I/O has moved what is impossible");
  // The server has answered what it was not given.
  if (erase(held_, io.key)) {
    closed_ = true;
    return;
  }
  require(erase(outstanding_, io.key), "an I/O ends that is not outstanding");
  last_finished_ = io;
  if (own.at > own.here) own.ends = io.key;
}

void ConversationDriver::go_on(Sender waiting) {
  if (std::exchange(stream(waiting).waits, false)) pump(waiting);
}

void ConversationDriver::release(std::size_t place) {
  require(place < held_.size(), "another I/O is held than before");
  const IoKey key = held_[place];
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(place));
  outstanding_.push_back(key);
  log_.push_back(fmt::format("release {}", key));
  conversation_->released(key);
  go_on(Sender::client);
}

void ConversationDriver::refuse(std::size_t place) {
  require(place < held_.size(), "another I/O is held than before");
  const IoKey key = held_[place];
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(place));
  std::vector<std::byte> answer;
  {
    const MemoryWatch::Section section(memory_);
    answer = conversation_->refuse(key);
  }
  log_.push_back(fmt::format("refuse {} {}", key, answer.size()));
  require(!answer.empty(), "a refusal without an answer");
  require(conversation_->moved(key) == 0, "a refused I/O has moved");
  go_on(Sender::client);
}

void ConversationDriver::forget(std::size_t place) {
  require(place < outstanding_.size(), "another I/O is outstanding than before");
  const IoKey key = outstanding_[place];
  outstanding_.erase(outstanding_.begin() + static_cast<std::ptrdiff_t>(place));
  forget_key(key);
}

void ConversationDriver::forget_ending() {
  if (const auto key = stream(Sender::server).ends) forget_key(*key);
}

void ConversationDriver::forget_key(IoKey key) {
  log_.push_back(fmt::format("forget {}", key));
  const MemoryWatch::Section section(memory_);
  conversation_->forget(key);
}

void ConversationDriver::forget_answers() {
  log_.emplace_back("forget answers");
  conversation_->forget_answers();
  go_on(Sender::client);
}

void ConversationDriver::hold_metadata(bool hold) {
  log_.push_back(fmt::format("hold metadata {}", hold));
  conversation_->hold_metadata(hold);
}

void ConversationDriver::log_state() {
  const Stream& client = stream(Sender::client);
  const std::optional<ClientTimeout> timeout = conversation_->client_timeout();
  log_.push_back(fmt::format(
      "rest={} data={} sends={} node={} timeout={} waits={} at {} {}", conversation_->at_rest(),
      conversation_->data_from_client(), conversation_->client_sends_data(),
      text(conversation_->serial_client()), timeout ? timeout->timeout.count() : 0, client.waits,
      client.at, stream(Sender::server).at));
  for (const IoKey key : outstanding_) {
    log_.push_back(fmt::format("io {} moved={} shows={} awaits={}", key, conversation_->moved(key),
                               conversation_->end_shows(key),
                               conversation_->awaits_client(key, client.at > client.here)));
  }
}

void ConversationDriver::check_memory() const {
  const std::size_t received = streams_[0].bytes.size() + streams_[1].bytes.size();
  require(memory_.peak() <= kMemory + kMemoryPerByte * received, "takes too much memory");
}

}  // namespace vpfs::test
