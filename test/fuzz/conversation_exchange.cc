#include "test/fuzz/conversation_exchange.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "test/fuzz/require.h"

namespace vpfs::test {
namespace {

constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();
// More looks than this at what one side says take too long.
constexpr std::size_t kMostPieces = 1024;

void compare(const ConversationDriver& left, const ConversationDriver& right) {
  const auto& a = left.log();
  const auto& b = right.log();
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (a[i] != b[i]) require(false, fmt::format("other pieces tell\n{}\nnot\n{}", b[i], a[i]));
  }
  if (left.cut_short() || right.cut_short()) return;
  require(a.size() == b.size(), "other pieces tell more or less");
  require(left.closed() == right.closed(), "other pieces end otherwise");
}

}  // namespace

void ConversationExchange::send(Sender from, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  happen({.kind = Kind::arrive, .from = from, .bytes = {bytes.begin(), bytes.end()}});
}

void ConversationExchange::release(std::size_t any) {
  const std::size_t count = driver_.held().size();
  if (count > 0) happen({.kind = Kind::release, .place = any % count});
}

void ConversationExchange::refuse(std::size_t any) {
  const std::size_t count = driver_.held().size();
  if (count > 0) happen({.kind = Kind::refuse, .place = any % count});
}

void ConversationExchange::forget(std::size_t any) {
  const std::size_t count = driver_.outstanding().size();
  if (count > 0) happen({.kind = Kind::forget, .place = any % count});
}

void ConversationExchange::forget_ending() {
  happen({.kind = Kind::forget_ending});
}

void ConversationExchange::forget_answers() {
  happen({.kind = Kind::forget_answers});
}

void ConversationExchange::hold_metadata(bool hold) {
  happen({.kind = Kind::hold_metadata, .place = hold ? std::size_t{1} : 0});
}

void ConversationExchange::happen(Event event) {
  if (driver_.closed()) return;
  total_ += event.bytes.size();
  apply(event, driver_, kWhole);
  events_.push_back(std::move(event));
}

void ConversationExchange::apply(const Event& event, ConversationDriver& driver,
                                 std::size_t piece) {
  if (driver.closed()) return;
  switch (event.kind) {
    case Kind::arrive:
      return driver.arrive(event.from, event.bytes, piece);
    case Kind::release:
      driver.release(event.place);
      break;
    case Kind::refuse:
      driver.refuse(event.place);
      break;
    case Kind::forget:
      driver.forget(event.place);
      break;
    case Kind::forget_ending:
      driver.forget_ending();
      break;
    case Kind::forget_answers:
      driver.forget_answers();
      break;
    case Kind::hold_metadata:
      driver.hold_metadata(event.place != 0);
      break;
  }
  driver.log_state();
}

void ConversationExchange::repeat(std::size_t piece, bool join) {
  ConversationDriver again(maker_());
  Event joined;
  for (const Event& event : events_) {
    if (join && event.kind == Kind::arrive && event.from == joined.from) {
      joined.bytes.insert(joined.bytes.end(), event.bytes.begin(), event.bytes.end());
      continue;
    }
    apply(joined, again, piece);
    joined = {};
    if (join && event.kind == Kind::arrive) {
      joined = event;
    } else {
      apply(event, again, piece);
    }
  }
  apply(joined, again, piece);
  compare(driver_, again);
}

void ConversationExchange::repeat_in_all_ways(std::size_t piece) {
  const std::size_t least = total_ / kMostPieces + 1;
  repeat(least, false);
  repeat(std::max(piece, least), false);
  repeat(kWhole, true);
}

}  // namespace vpfs::test
