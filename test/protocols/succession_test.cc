// Captures of real traffic, with another conversation that goes on at every boundary.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "protocols/registry.h"
#include "test/support/captured_streams.h"

namespace vpfs::test {
namespace {

// What a proxy would do with a connection.
struct Done {
  Sender from;
  Step::Action action;
  std::uint64_t size;
  IoKey finished;
  std::uint64_t bytes;
  std::uint64_t held_bytes;
  std::uint32_t uid;

  auto operator<=>(const Done&) const = default;
};

// Relays a captured connection. Where `hands_over`, another conversation goes on wherever a session
// may be packed: before every message, and with a request that is held.
class Relay {
 public:
  Relay(const Protocol& protocol, const CapturedStream& client, const CapturedStream& server,
        bool hands_over)
      : protocol_(protocol),
        streams_{&client, &server},
        hands_over_(hands_over),
        conversation_(protocol.make_conversation(1)) {}

  void run() {
    for (const auto& [from, size] : streams_[0]->order) {
      available_[index(from)] += size;
      // One stream may wait for the other.
      for (std::size_t before = done.size() + 1; before != done.size();) {
        before = done.size();
        go_on(Sender::client);
        go_on(Sender::server);
      }
    }
  }

  std::vector<Done> done;
  std::size_t hand_overs = 0;

 private:
  static std::size_t index(Sender from) { return from == Sender::client ? 0 : 1; }

  void go_on(Sender from) {
    const std::size_t i = index(from);
    while (at_[i] < available_[i]) {
      hand_over({});
      const auto here = std::span(streams_[i]->bytes).subspan(at_[i], available_[i] - at_[i]);
      const Step step = conversation_->next(from, here);
      ASSERT_NE(step.action, Step::Action::lost_framing) << conversation_->problem();
      if (step.action == Step::Action::wait || step.action == Step::Action::need_more) return;
      Done one = {.from = from,
                  .action = step.action,
                  .size = step.size,
                  .finished = step.finished ? step.finished->key : 0,
                  .bytes = step.finished ? step.finished->bytes : 0,
                  .held_bytes = 0,
                  .uid = 0};
      at_[i] += step.size;
      if (step.action == Step::Action::hold) {
        hand_over(here.first(static_cast<std::size_t>(step.size)));
        one.held_bytes = conversation_->held().bytes;
        one.uid = conversation_->held().uid.value_or(0);
        conversation_->released(conversation_->held().key);
        outstanding_.insert(conversation_->held().key);
      }
      if (step.finished) outstanding_.erase(step.finished->key);
      done.push_back(one);
    }
  }

  [[nodiscard]] bool at_boundary() const {
    return at_[0] <= available_[0] && at_[1] <= available_[1] && outstanding_.empty();
  }

  // `held`: a request that is held now; empty: there is none.
  void hand_over(std::span<const std::byte> held) {
    if (!hands_over_ || !at_boundary() || !conversation_->may_be_saved()) return;
    SavedState state;
    conversation_->save(state);
    const SavedState read = SavedState::decode(state.encode()).value();
    conversation_ = protocol_.make_conversation(2);
    conversation_->restore(read);
    ++hand_overs;
    if (held.empty()) return;
    const Step step = conversation_->next(Sender::client, held);
    ASSERT_EQ(step.action, Step::Action::hold);
    ASSERT_EQ(step.size, held.size());
  }

  const Protocol& protocol_;
  const CapturedStream* streams_[2];
  const bool hands_over_;
  std::unique_ptr<Conversation> conversation_;
  std::size_t available_[2] = {};
  std::size_t at_[2] = {};
  std::set<IoKey> outstanding_;
};

void expect_same(std::string_view folder, std::size_t least) {
  const Protocol& protocol = *find_protocol(folder);
  std::size_t hand_overs = 0;
  for (const std::string& file : capture_files(folder)) {
    const std::vector<CapturedStream> streams = captured_streams(file);
    for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
      Relay stays(protocol, streams[i], streams[i + 1], false);
      stays.run();
      Relay moves(protocol, streams[i], streams[i + 1], true);
      moves.run();
      if (::testing::Test::HasFatalFailure()) return;
      hand_overs += moves.hand_overs;
      // A key is the conversation's own where connections carry one request at a time.
      for (auto* each : {&stays.done, &moves.done}) {
        for (Done& one : *each) one.finished = one.finished != 0 ? 1 : 0;
      }
      ASSERT_EQ(stays.done.size(), moves.done.size()) << streams[i].name;
      EXPECT_TRUE(stays.done == moves.done) << streams[i].name;
    }
  }
  EXPECT_GT(hand_overs, least) << folder;
}

TEST(ConversationSuccession, OrangefsCapturesAreRelayedAlike) {
  expect_same("orangefs", 800);
}
TEST(ConversationSuccession, BeegfsCapturesAreRelayedAlike) {
  expect_same("beegfs", 300);
}

// Nothing that a conversation is told makes it wait for ever, or use more memory than it may.
TEST(ConversationSuccession, AStateOfNonsenseIsHarmless) {
  for (const Protocol& protocol : protocols()) {
    SavedState state;
    SavedState::Numbers passing;
    for (std::uint64_t tag = 0; tag < 100'000; ++tag) {
      passing.push_back(tag / 2);
      passing.push_back(tag);
    }
    state.set("passing", std::move(passing));
    state.set("answers_due", std::uint64_t{3});
    state.set("answers_in_doubt", UINT64_MAX);
    state.set("client", std::uint64_t{1} << 40);
    const auto conversation = protocol.make_conversation(1);
    conversation->restore(state);
    EXPECT_TRUE(conversation->may_be_saved());
    conversation->forget_answers();
  }
}

}  // namespace
}  // namespace vpfs::test
