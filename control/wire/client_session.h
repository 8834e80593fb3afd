#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/wire/framing.h"
#include "control/wire/port_address.h"
#include "control/wire/protocol.h"
#include "net/async.h"
#include "net/channel.h"
#include "net/tls.h"

namespace vpfs::control {

// Why there is no answer, or what the port refused.
struct Failure {
  bool reached = false;  // the port said this; otherwise the port was not reached, or fell silent
  bool answers = false;  // it did not answer this request in time, but said Hello
  Error error;           // UNAVAILABLE with the port's address as place, if it was not reached
};
template <typename T>
using Reply = std::expected<T, Failure>;

struct ClientOptions {
  std::string program;  // "vpfsctl 0.1.0"
  Hello::Role role = Hello::ADMINISTRATOR;
  std::shared_ptr<net::TlsContext> tls;  // shared by connections; ports on TCP need it
  Duration connect_within = std::chrono::seconds(5);
  // The same where several are tried, one of which leads.
  Duration connect_each_within = std::chrono::seconds(1);
  Versions versions;
  // For errors: the program that is asked, and the key of its configuration with the socket.
  std::string peer = "proxy";
  std::string key = "control.socket";
  // The error when a coordinator answers where none is meant; "": one may.
  std::string if_coordinator;
  // The same when a stage answers where a coordinator is meant.
  std::string if_stage;
  // Errors have names of users and groups, which may take long to look up.
  bool names_users = true;
};

// The client's side of a connection to a control port. Belongs to one strand. One coroutine at a
// time asks or waits. After a Failure that was not `reached` it is closed.
class ClientSession {
 public:
  // Connects and exchanges Hello. A host's name is looked up on a thread of asio's, which cannot be
  // hurried, unless its `endpoints` are known.
  [[nodiscard]] static net::Task<Reply<std::unique_ptr<ClientSession>>> open(
      PortAddress address, ClientOptions options, std::vector<net::Endpoint> endpoints = {});
  ~ClientSession();
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  [[nodiscard]] const Hello& hello() const { return hello_; }
  [[nodiscard]] bool closed() const { return closed_; }

  // The first answer; an answer that is an Error is a Failure.
  [[nodiscard]] net::Task<Reply<Envelope>> ask(Envelope request, Duration patience);
  // Sends a request without waiting for answers; its number. For a Watch.
  [[nodiscard]] net::Task<Reply<std::uint64_t>> start(Envelope request, Duration patience);
  // The next answer to the request of that number; others are dropped.
  [[nodiscard]] net::Task<Reply<Envelope>> next(std::uint64_t number, Duration patience);

  void close();

 private:
  ClientSession(PortAddress address, std::shared_ptr<net::Channel> channel);
  [[nodiscard]] net::Task<Reply<void>> greet(ClientOptions options);
  [[nodiscard]] net::Task<Reply<Envelope>> read_one();
  [[nodiscard]] net::Task<Reply<Envelope>> read_answer(std::uint64_t number);
  [[nodiscard]] Failure lost(const std::string& why);

  const PortAddress address_;
  const std::shared_ptr<net::Channel> channel_;  // shared with timers
  FrameReader reader_;
  Hello hello_;
  std::uint64_t last_number_ = 0;
  bool closed_ = false;
};

}  // namespace vpfs::control
