#include "test/support/control/fake_stage.h"

#include <poll.h>

namespace vpfs::test {

using control::Envelope;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

FakeStage FakeStage::dial(const std::string& path) {
  FakeStage stage;
  net::UnixSocket socket(*stage.context_);
  std::error_code error;
  socket.connect(path, error);
  if (!error) stage.use(net::make_ready_stream(net::StreamSocket(std::move(socket))));
  return stage;
}

FakeStage FakeStage::dial(const net::Endpoint& tcp, std::shared_ptr<net::TlsContext> tls) {
  FakeStage stage;
  net::Socket socket(*stage.context_);
  std::error_code error;
  socket.connect(tcp, error);
  if (error) return stage;
  net::StreamSocket stream(std::move(socket));
  stage.use(tls == nullptr ? net::make_ready_stream(std::move(stream))
                           : net::make_ready_tls_stream(std::move(stream), std::move(tls),
                                                        net::TlsSide::client, "localhost"));
  return stage;
}

void FakeStage::use(std::unique_ptr<net::ReadyStream> stream) {
  stream_ = std::move(stream);
  const auto until = steady_clock::now() + 5s;
  for (;;) {
    const auto wants = stream_->handshake();
    if (!wants) return stream_.reset();
    if (*wants == net::ReadyStream::Wants::nothing) return;
    const bool reads = *wants == net::ReadyStream::Wants::read;
    if (!wait_for(reads ? POLLIN : POLLOUT, until)) return stream_.reset();
  }
}

bool FakeStage::wait_for(short events, steady_clock::time_point until) const {
  const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
  pollfd wait = {.fd = stream_->descriptor(), .events = events, .revents = 0};
  return left > 0 && ::poll(&wait, 1, static_cast<int>(left)) > 0;
}

bool FakeStage::send(std::string_view bytes, milliseconds patience) {
  if (!connected()) return false;
  const auto until = steady_clock::now() + patience;
  while (!bytes.empty()) {
    const auto outcome = stream_->write_now(std::as_bytes(std::span(bytes)));
    if (outcome.error) return false;
    bytes.remove_prefix(outcome.size);
    if (outcome.size == 0 && !wait_for(POLLOUT, until)) return false;
  }
  return true;
}

bool FakeStage::send(const Envelope& message) {
  std::string frame;
  return control::append_frame(message, control::kMostAnswer, frame) && send(frame);
}

std::optional<Envelope> FakeStage::receive(milliseconds patience) {
  if (!connected()) return std::nullopt;
  const auto until = steady_clock::now() + patience;
  for (;;) {
    const auto frame = reader_.next();
    if (!frame) return std::nullopt;
    if (*frame) {
      Envelope message;
      if (!control::decode(**frame, message)) return std::nullopt;
      return message;
    }
    const auto outcome = stream_->read_now(reader_.room());
    if (outcome.error || outcome.has_ended) return std::nullopt;
    reader_.received(outcome.size);
    if (outcome.size == 0 && !wait_for(POLLIN, until)) return std::nullopt;
  }
}

bool FakeStage::closed_within(milliseconds patience) {
  if (!connected()) return true;
  const auto until = steady_clock::now() + patience;
  std::byte dropped[4096];
  for (;;) {
    const auto outcome = stream_->read_now(dropped);
    if (outcome.error || outcome.has_ended) return true;
    if (outcome.size == 0 && !wait_for(POLLIN, until)) return false;
  }
}

std::optional<Envelope> FakeStage::greet(const control::Hello& hello) {
  Envelope envelope;
  envelope.set_id(1);
  *envelope.mutable_hello() = hello;
  if (!send(envelope)) return std::nullopt;
  return receive();
}

std::optional<control::Cycle> FakeStage::answer_cycle(bool applied) {
  const auto asked = receive();
  if (!asked || !asked->has_cycle()) return std::nullopt;
  Envelope answer;
  answer.set_id(asked->id());
  answer.set_answer(true);
  answer.mutable_report()->set_term(asked->cycle().term());
  answer.mutable_report()->set_sequence(asked->cycle().sequence());
  answer.mutable_report()->set_applied(applied);
  if (!send(answer)) return std::nullopt;
  return asked->cycle();
}

StageSocket::StageSocket(const std::string& path) : acceptor_(context_, path) {}

FakeStage StageSocket::accept(milliseconds patience) {
  FakeStage stage;
  pollfd wait = {.fd = acceptor_.native_handle(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0) return stage;
  net::UnixSocket socket(*stage.context_);
  std::error_code error;
  acceptor_.accept(socket, error);
  if (!error) stage.use(net::make_ready_stream(net::StreamSocket(std::move(socket))));
  return stage;
}

FakeStage StageSocket::accept_and_greet(const control::Hello& hello) {
  FakeStage stage = accept();
  const auto asked = stage.receive();
  if (!asked || !asked->has_hello()) return stage;
  Envelope answer;
  answer.set_id(asked->id());
  answer.set_answer(true);
  *answer.mutable_hello() = hello;
  (void)stage.send(answer);
  return stage;
}

control::Hello stage_hello(const std::string& name) {
  control::Hello hello;
  hello.set_version(1);
  hello.set_least(1);
  hello.set_role(control::Hello::STAGE);
  hello.set_name(name);
  hello.set_incarnation(7);
  hello.set_cost_model("cost");
  hello.set_program("fake-stage 1");
  for (const char* const each : {"caps", "elsewhere"}) hello.add_capabilities(each);
  return hello;
}

}  // namespace vpfs::test
