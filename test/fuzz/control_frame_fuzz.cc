#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "control/wire/command_text.h"
#include "control/wire/conversation.h"
#include "control/wire/requests.h"
#include "test/fuzz/fuzz_input.h"
#include "test/fuzz/require.h"
#include "test/support/control/fake_owner.h"

// One peer of a control port sends anything; the owner answers when the input says so. The port
// asks its owner only for what the peer may have, stays within its bounds, and sends whole frames.
namespace vpfs::test {
namespace {

using namespace control;

class FuzzHost final : public ConversationHost {
 public:
  Owner& owner() override { return owner_; }
  void ask(std::uint64_t ticket, Envelope request, const Caller& caller) override {
    require(conversation->greeted() && !conversation->ended(), "a request without a Hello");
    require(caller.rights >= needed_right(request), "a request without the right for it");
    require(command_text(request).size() < 5000, "the text of a command has no bound");
    tickets.push_back(ticket);
  }
  bool admits_another(TimePoint /*now*/) override { return admits; }
  void record(const Envelope& request, const Caller& caller, std::string_view /*result*/,
              bool refused) override {
    (void)command_text(request);
    require(refused == (caller.rights < Rights::change), "a record of what was not refused");
  }

  Conversation* conversation = nullptr;
  std::deque<std::uint64_t> tickets;
  bool admits = true;

 private:
  FakeOwner owner_;
};

class Run {
 public:
  explicit Run(FuzzInput& in) : in_(in) {
    limits_.frame = 4096;
    limits_.frame_of_writers = 65536;
    limits_.answers_before_pause = 20000;
    caller_.rights = static_cast<Rights>(in_.below(3));
    caller_.uid = 5;
    conversation_.emplace(host_, caller_, Versions{.newest = 2, .least = 1}, limits_, counters_);
    host_.conversation = &*conversation_;
  }

  void step() {
    switch (in_.below(8)) {
      case 0:
        say_hello();
        break;
      case 1:
        answer();
        break;
      case 2:
        now_ += std::chrono::milliseconds(in_.u16());
        conversation_->run_watches(now_);
        break;
      case 3:
        caller_.rights = static_cast<Rights>(in_.below(3));
        conversation_->set_caller(caller_);
        break;
      case 4:
        check_output();
        break;
      case 5:
        give(in_.bytes(in_.u8()));
        break;
      default: {  // whole frames
        const auto message = in_.bytes(in_.size() % 70000);
        std::vector<std::byte> frame(4);
        for (std::size_t i = 0; i < 4; ++i) {
          frame[i] = static_cast<std::byte>(message.size() >> (8 * (3 - i)));
        }
        frame.insert(frame.end(), message.begin(), message.end());
        give(frame);
      }
    }
    require(conversation_->requests_in_flight() <= limits_.requests_in_flight,
            "more requests in flight than allowed");
  }

  void check_output() {
    FrameReader reader(kMostAnswer);
    std::string& output = conversation_->output();
    for (std::string_view rest = output; !rest.empty();) {
      const auto room = reader.room();
      const std::size_t size = std::min(room.size(), rest.size());
      std::memcpy(room.data(), rest.data(), size);
      reader.received(size);
      rest.remove_prefix(size);
      for (;;) {
        const auto frame = reader.next();
        require(frame.has_value(), "the port broke its framing");
        if (!*frame) break;
        Envelope message;
        require(decode(**frame, message), "the port sent an invalid message");
        require(message.answer() || message.has_flows(), "the port asked for something");
      }
    }
    require(reader.buffered() == 0, "the port sent a part of a frame");
    output.clear();
  }

 private:
  void say_hello() {
    Envelope hello;
    hello.set_id(1);
    hello.mutable_hello()->set_version(in_.u8() % 4);
    hello.mutable_hello()->set_least(1);
    std::string frame;
    require(append_frame(hello, kMostAnswer, frame), "Hello has no frame");
    give(std::as_bytes(std::span(frame)));
  }

  void answer() {
    if (host_.tickets.empty()) return;
    Envelope answer;
    if (in_.u8() % 4 == 0) {
      answer.mutable_error()->set_text("no");
    } else {
      answer.mutable_ack()->set_text(std::string(in_.size() % 30000, 'x'));
    }
    conversation_->answered(host_.tickets.front(), std::move(answer));
    host_.tickets.pop_front();
    handle();
  }

  // As a connection does: while it takes bytes.
  void give(std::span<const std::byte> bytes) {
    while (!bytes.empty() && conversation_->wants_input()) {
      const auto room = conversation_->room();
      require(room.size() <= 2 * (limits_.frame_of_writers + 8192), "a buffer without a bound");
      const std::size_t size = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), size);
      conversation_->received(size);
      bytes = bytes.subspan(size);
      handle();
    }
  }

  void handle() {
    while (conversation_->handle(now_)) {
    }
  }

  FuzzInput& in_;
  PortLimits limits_;
  PortCounters counters_;
  FuzzHost host_;
  Caller caller_{.name = "fuzzer", .from = "unix"};
  TimePoint now_ = TimePoint(std::chrono::hours(1));
  std::optional<Conversation> conversation_;
};

}  // namespace
}  // namespace vpfs::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  vpfs::test::FuzzInput in(data, size);
  vpfs::test::Run run(in);
  while (!in.empty()) run.step();
  run.check_output();
  return 0;
}
