#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/wire/conversation.h"
#include "test/control/wire/manual_clock.h"
#include "test/support/control/fake_owner.h"
#include "test/support/control/raw_peer.h"

namespace vpfs::control {

// A port around one conversation: answers come when the test says so.
class ConversationTest : public ::testing::Test, public ConversationHost {
 protected:
  struct Question {
    std::uint64_t ticket;
    Envelope request;
    Caller caller;
  };

  Conversation& talk(Rights rights = Rights::change) {
    Caller caller{.name = "alice (uid 5)", .from = "unix", .rights = rights, .uid = 5};
    conversation_.emplace(*this, caller, versions_, limits_, counters_);
    return *conversation_;
  }

  Owner& owner() override { return owner_; }
  void ask(std::uint64_t ticket, Envelope request, const Caller& caller) override {
    questions_.push_back({ticket, std::move(request), caller});
  }
  bool admits_another(TimePoint /*now*/) override { return admits_; }
  void record(const Envelope& request, const Caller& /*caller*/, std::string_view result,
              bool refused) override {
    records_.push_back(std::string(body_name(request)) + (refused ? " refused " : " ") +
                       std::string(result));
  }

  void give(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto room = conversation_->room();
      const std::size_t size = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), size);
      conversation_->received(size);
      bytes.remove_prefix(size);
      while (conversation_->handle(clock_.now())) {
      }
    }
  }
  void give(const Envelope& message) { give(std::string_view(test::frame_of(message))); }

  // What the port has sent since the last call.
  std::vector<Envelope> heard() {
    FrameReader reader(kMostAnswer);
    std::string& output = conversation_->output();
    std::vector<Envelope> messages;
    for (std::string_view rest = output; !rest.empty();) {
      const auto room = reader.room();
      const std::size_t size = std::min(room.size(), rest.size());
      std::memcpy(room.data(), rest.data(), size);
      reader.received(size);
      rest.remove_prefix(size);
      for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
        EXPECT_TRUE(decode(**frame, messages.emplace_back()));
      }
    }
    EXPECT_EQ(reader.buffered(), 0U);
    output.clear();
    return messages;
  }
  Envelope heard_one() {
    auto messages = heard();
    EXPECT_EQ(messages.size(), 1U);
    return messages.empty() ? Envelope() : messages[0];
  }

  Conversation& greet(Rights rights = Rights::change) {
    Conversation& conversation = talk(rights);
    Envelope hello;
    hello.set_id(1);
    hello.mutable_hello()->set_version(1);
    hello.mutable_hello()->set_least(1);
    give(hello);
    EXPECT_TRUE(conversation.greeted());
    conversation.output().clear();
    return conversation;
  }

  void answer_with_ack(std::size_t question) {
    Envelope answer;
    answer.mutable_ack();
    conversation_->answered(questions_[question].ticket, answer);
  }

  PortLimits limits_;
  Versions versions_;
  PortCounters counters_;
  test::FakeOwner owner_;
  test::ManualClock clock_;
  bool admits_ = true;
  std::vector<Question> questions_;
  std::vector<std::string> records_;
  std::optional<Conversation> conversation_;
};

inline Envelope reload(std::uint64_t id) {
  Envelope request;
  request.set_id(id);
  request.mutable_reload();
  return request;
}

}  // namespace vpfs::control
