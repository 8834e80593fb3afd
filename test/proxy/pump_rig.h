#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "net/descriptor.h"
#include "net/epoll_set.h"
#include "net/socket_options.h"
#include "proxy/pump/pump.h"
#include "proxy/pump/pump_socket.h"
#include "test/net/socket_pair.h"
#include "test/proxy/counting_clock.h"
#include "test/proxy/faulty_calls.h"

// The rig for tests of a pump: a small protocol, an owner that follows it, and a pump between two
// connections.
namespace vpfs::proxy {

using ByteVector = std::vector<std::byte>;

// A message starts with a head of 8 bytes: what to do with it, and its length.
inline constexpr std::size_t kHead = 8;
enum class Kind : char {
  forward = 'F',
  hold = 'H',
  discard = 'D',
  raw = 'R',  // the head is parsed, the rest is forwarded unseen
};

// A message of `size` bytes, head included. The body depends on the position.
inline ByteVector message(Kind kind, std::size_t size, unsigned seed = 0) {
  ByteVector bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(seed * 31 + i * 7 + i / 256);
  const auto length = static_cast<std::uint32_t>(size);
  std::memset(bytes.data(), 0, kHead);
  bytes[0] = static_cast<std::byte>(kind);
  std::memcpy(bytes.data() + 4, &length, sizeof length);
  return bytes;
}

inline void append(ByteVector& to, std::span<const std::byte> more) {
  to.insert(to.end(), more.begin(), more.end());
}

inline constexpr std::size_t kLarge = std::size_t{300} * 1024;  // is spliced

// A stream for the pump and what should come of it.
struct Script {
  ByteVector in;
  ByteVector out;  // expected if each held message goes out in its place
  std::size_t held = 0;
  std::size_t finished = 0;

  void add(Kind kind, std::size_t size) {
    const ByteVector bytes = message(kind, size, static_cast<unsigned>(in.size()));
    append(in, bytes);
    if (kind != Kind::discard) append(out, bytes);
    if (kind == Kind::hold) ++held;
    if (kind == Kind::forward || kind == Kind::raw) ++finished;
  }
};

// Follows the heads of the messages. Only the rig releases what it holds.
class ScriptedOwner final : public PumpOwner {
 public:
  explicit ScriptedOwner(const PumpThread& thread) : thread_(thread) {}

  Step next(Sender, std::span<const std::byte> bytes) override {
    latest_ = thread_.now();
    if (raw_left_ > 0) {
      return {.action = Step::Action::forward,
              .size = std::exchange(raw_left_, 0),
              .finished = FinishedIo{.key = ++key_}};
    }
    if (serial_ && held.size() > released) return {.action = Step::Action::wait};
    if (bytes.size() < kHead) return {.action = Step::Action::need_more, .size = kHead};
    std::uint32_t size = 0;
    std::memcpy(&size, bytes.data() + 4, sizeof size);
    switch (static_cast<Kind>(bytes[0])) {
      case Kind::forward:
        return {
            .action = Step::Action::forward, .size = size, .finished = FinishedIo{.key = ++key_}};
      case Kind::discard:
        return {.action = Step::Action::discard, .size = size};
      case Kind::raw:
        raw_left_ = size - kHead;
        return {.action = Step::Action::forward, .size = kHead};
      case Kind::hold:
        if (bytes.size() < size) return {.action = Step::Action::need_more, .size = size};
        return {.action = Step::Action::hold, .size = size};
    }
    return {.action = Step::Action::lost_framing};
  }
  void hold(std::span<const std::byte> bytes) override {
    held.emplace_back(bytes.begin(), bytes.end());
    if (on_hold) on_hold();
  }
  void finished(const FinishedIo& io) override { finished_keys.push_back(io.key); }
  void stepped(Sender) override {}
  void sink_moved(Sender) override { ++times_moved; }
  void lost_framing(Sender) override { end("lost framing", {}); }
  void source_ended(Sender, std::error_code why) override { end("source", why); }
  void sink_failed(Sender, std::error_code why) override { end("sink", why); }

  // Has the stream wait behind each held message, like a connection that carries one request at a
  // time.
  void be_serial() { serial_ = true; }

  std::deque<ByteVector> held;
  std::size_t released = 0;  // of them
  std::vector<IoKey> finished_keys;
  int times_moved = 0;
  std::vector<std::string> ends;  // why the stream ended
  std::error_code error;
  std::function<void()> on_end;
  std::function<void()> on_hold;

 private:
  void end(const char* what, std::error_code why) {
    ends.emplace_back(what);
    error = why;
    if (on_end) on_end();
  }

  const PumpThread& thread_;
  TimePoint latest_ = {};
  IoKey key_ = 0;
  std::uint64_t raw_left_ = 0;
  bool serial_ = false;
};

// A pump between two TCP connections, and their far ends.
class PumpRig {
 public:
  PumpRig() {
    owner->on_end = [this] { pump.stop(); };
  }
  PumpRig(const PumpRig&) = delete;
  PumpRig& operator=(const PumpRig&) = delete;

  // Runs `what` in an event, as a worker does.
  template <typename What>
  void in_event(What what) {
    const PumpThread::Event event(thread);
    what();
  }
  void start() {
    ASSERT_TRUE(source.watch());
    ASSERT_TRUE(sink.watch());
    poll();
  }
  void inject(std::span<const std::byte> bytes) {
    in_event([&] {
      pump.inject(bytes);
      pump.flush();
    });
  }
  // From now on releases each held message at the end of its event.
  void release_at_once() {
    releasing_ = true;
    in_event([] {});
  }

  // The sockets hold a few hundred KiB instead of several MiB.
  void make_buffers_small() {
    const int size = 128 * 1024;
    for (const int socket : {feeder().native_handle(), source.native_handle(), sink.native_handle(),
                             taker().native_handle()}) {
      ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
      ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
    }
  }

  // Handles all pending events.
  void poll() {
    while (run_once(Duration::zero())) {
    }
  }
  // As a worker does. Returns whether there was anything.
  bool run_once(Duration patience) {
    if (!told_again_ && calls.has_failed()) {
      // A socket that had nothing tells of what comes later. The bytes of this one are there.
      told_again_ = true;
      source.want_room();
    }
    const bool had_more = thread.has_more();
    const bool had_any = set.serve(had_more ? Duration::zero() : patience);
    thread.go_on();
    return had_any || had_more;
  }
  // Sends all bytes while the pump runs and its output is received.
  void feed(std::span<const std::byte> bytes) {
    for (int tries = 0; !bytes.empty() && tries < kMostTries;) {
      const ssize_t sent =
          ::send(feeder().native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
        poll();
      } else {
        run_a_while();
        ++tries;
      }
    }
    ASSERT_TRUE(bytes.empty());
  }
  // Runs until `total` bytes have arrived, or the stream has ended.
  void take(std::size_t total) {
    for (int tries = 0; taken.size() < total && owner->ends.empty() && tries < kMostTries;
         ++tries) {
      run_a_while();
    }
  }
  void take_until_end() {
    for (int tries = 0; owner->ends.empty() && tries < kMostTries; ++tries) run_a_while();
    take_what_is_there();
  }
  void take_what_is_there() {
    std::array<std::byte, 65536> buffer;
    for (ssize_t got = 0;
         (got = ::recv(taker().native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;) {
      append(taken, std::span(buffer).first(static_cast<std::size_t>(got)));
    }
  }
  // Sends bytes while the output is not received, until the pump takes no more. Returns how many
  // were sent.
  std::size_t fill_up(std::span<const std::byte> bytes) {
    std::size_t in = 0;
    for (int idle = 0; idle < 20 && in < bytes.size();) {
      const ssize_t sent = ::send(feeder().native_handle(), bytes.data() + in, bytes.size() - in,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      idle = sent > 0 ? 0 : idle + 1;
      if (sent > 0) in += static_cast<std::size_t>(sent);
      (void)run_once(std::chrono::milliseconds(1));
      poll();
    }
    return in;
  }
  // The pump reads what is sent to feeder() and writes what arrives at taker().
  [[nodiscard]] net::Socket& feeder() { return in_.first; }
  [[nodiscard]] net::Socket& taker() { return out_.second; }

 private:
  static constexpr int kMostTries = 5000;

  void run_a_while() {
    const std::size_t before = taken.size();
    poll();
    take_what_is_there();
    if (taken.size() > before) return;
    (void)run_once(std::chrono::milliseconds(1));
    take_what_is_there();
  }
  void end_of_event() {
    while (releasing_ && owner->released < owner->held.size()) {
      pump.inject_borrowed(owner->held[owner->released++]);
      pump.flush();
    }
  }

  asio::io_context context_;

 public:
  CountingClock clock;
  FaultyCalls calls;
  net::EpollSet set;
  PumpThread thread{set, clock, calls, [this] { end_of_event(); }};
  std::unique_ptr<ScriptedOwner> owner = std::make_unique<ScriptedOwner>(thread);
  ByteVector taken;

 private:
  std::pair<net::Socket, net::Socket> in_ = net::connected_pair(context_);
  std::pair<net::Socket, net::Socket> out_ = net::connected_pair(context_);
  bool releasing_ = false;
  bool told_again_ = false;

 public:
  PumpSocket source{thread, net::Descriptor(in_.second.release())};
  PumpSocket sink{thread, net::Descriptor(out_.first.release())};
  Pump pump{*owner, thread, Sender::client, source, sink};
};

// Has the pump serve one request at a time, so that the order of the output is known.
inline void begin(PumpRig& rig) {
  net::ignore_broken_pipes();
  rig.owner->be_serial();
  rig.release_at_once();
  rig.start();
}

inline void expect_all(PumpRig& rig, const Script& script, std::size_t times = 1) {
  rig.take(script.out.size() * times);
  ByteVector expected;
  for (std::size_t i = 0; i < times; ++i) append(expected, script.out);
  ASSERT_TRUE(rig.taken == expected) << rig.taken.size() << " of " << expected.size();
  EXPECT_EQ(rig.owner->released, script.held * times);
  EXPECT_EQ(rig.owner->finished_keys.size(), script.finished * times);
  EXPECT_EQ(rig.pump.output().bytes_sent(), expected.size());
}

}  // namespace vpfs::proxy
