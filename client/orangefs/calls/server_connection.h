#pragma once

#include <cstdint>
#include <memory>
#include <system_error>
#include <unordered_map>
#include <vector>

#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/calls/exchange.h"
#include "net/async.h"
#include "net/input_stream.h"
#include "net/output_queue.h"
#include "protocols/orangefs/bmi_header.h"
#include "protocols/orangefs/message.h"

namespace vpfs::client {

// A TCP connection to one server, with any number of exchanges outstanding.
//
// A closed connection cannot be reopened. Messages for an exchange that has timed out are read and
// dropped. It lives until close(). Belongs to the strand of its executor.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  [[nodiscard]] static net::Task<Result<std::shared_ptr<ServerConnection>>> open(
      net::Endpoint server, const Clock& clock, Duration patience);
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  [[nodiscard]] bool usable() const { return usable_ && output_.open(); }

  // Requires usable(). Gives the exchange a tag and routes the tag's messages to it. The exchange
  // fails with timed_out when its tag is silent for `patience`.
  [[nodiscard]] orangefs::Tag begin(Exchange& exchange, Duration patience);
  // The exchange is complete.
  void forget(Exchange& exchange);
  void send(net::OutputQueue::Message message) { output_.send(std::move(message)); }

  // Ends all exchanges with `reason`.
  void close(std::error_code reason);

 private:
  ServerConnection(net::Socket socket, const Clock& clock);

  [[nodiscard]] net::Task<> read_messages();
  [[nodiscard]] net::Task<bool> read_message(const orangefs::BmiHeader& header);
  [[nodiscard]] net::Task<bool> read_response(orangefs::Tag tag, std::uint64_t size);
  [[nodiscard]] net::Task<bool> read_data(orangefs::Tag tag, std::uint64_t size);
  // Handles a whole response that is buffered already, without suspending.
  enum class Step { handled, need_more, broken };
  [[nodiscard]] Step handle_buffered();
  [[nodiscard]] bool hand_over(orangefs::Tag tag, std::span<const std::byte> payload);
  [[nodiscard]] net::Task<> watch_deadlines();
  void expire(TimePoint now);
  [[nodiscard]] Exchange* find(orangefs::Tag tag);

  const Clock& clock_;
  net::Socket socket_;
  net::InputStream input_;
  net::OutputQueue output_;
  asio::steady_timer watch_;
  std::unordered_map<orangefs::Tag, Exchange*> exchanges_;
  std::size_t bulk_reads_ = 0;  // of those
  orangefs::Tag last_tag_ = 0;
  orangefs::Tag receiving_ = 0;  // whose data goes into its owner's memory right now; 0: none
  Duration least_patience_ = std::chrono::seconds(8);
  bool usable_ = true;
};

}  // namespace vpfs::client
