#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "control/wire/client_session.h"
#include "control/wire/leader/leader_session.h"

namespace vpfs::control {

// A connection to one control port for a program that waits for each answer. Its calls block.
class PortClient {
 public:
  [[nodiscard]] static Reply<PortClient> connect(const PortAddress& address,
                                                 const ClientOptions& options);
  PortClient(PortClient&&) noexcept;
  PortClient& operator=(PortClient&&) noexcept;
  ~PortClient();

  [[nodiscard]] const Hello& hello() const { return session_->hello(); }
  // As those of ClientSession.
  [[nodiscard]] Reply<Envelope> ask(Envelope request, Duration patience);
  [[nodiscard]] Reply<std::uint64_t> start(Envelope request, Duration patience);
  [[nodiscard]] Reply<Envelope> next(std::uint64_t number, Duration patience);

 private:
  PortClient(std::unique_ptr<asio::io_context> context, std::unique_ptr<ClientSession> session);
  void close();
  std::unique_ptr<asio::io_context> context_;
  std::unique_ptr<ClientSession> session_;
};

// The one of several coordinators that leads, for a program that waits for each answer. Its calls
// block.
class LeaderClient {
 public:
  LeaderClient(std::vector<PortAddress> addresses, ClientOptions options);
  ~LeaderClient();
  LeaderClient(const LeaderClient&) = delete;
  LeaderClient& operator=(const LeaderClient&) = delete;

  // As those of LeaderSession.
  [[nodiscard]] const Hello* hello() const { return session_->hello(); }
  [[nodiscard]] Reply<Envelope> ask(Envelope request, Duration patience);

 private:
  std::unique_ptr<asio::io_context> context_;
  std::unique_ptr<LeaderSession> session_;
};

// The control ports of a site, asked side by side by one thread. Its calls block until each port
// has answered or failed.
//
// Connections stay from one call to the next; one that failed is made anew.
class SiteClient {
 public:
  SiteClient(std::vector<PortAddress> ports, ClientOptions options);
  ~SiteClient();
  SiteClient(const SiteClient&) = delete;
  SiteClient& operator=(const SiteClient&) = delete;

  [[nodiscard]] const std::vector<PortAddress>& ports() const { return ports_; }
  // What that port said of itself; null while it is not connected.
  [[nodiscard]] const Hello* hello(std::size_t port) const;

  // The answers in the order of the ports.
  [[nodiscard]] std::vector<Reply<Envelope>> ask(const Envelope& request, Duration patience);
  // With a request for each port; nothing is asked of a port without one, and nothing comes of it.
  [[nodiscard]] std::vector<std::optional<Reply<Envelope>>> ask(
      const std::vector<std::optional<Envelope>>& requests, Duration patience);

 private:
  [[nodiscard]] net::Task<Reply<Envelope>> ask_once(std::size_t port, Envelope request,
                                                    Duration patience);
  [[nodiscard]] net::Task<std::optional<Reply<Envelope>>> ask_one(std::size_t port,
                                                                  std::optional<Envelope> request,
                                                                  Duration patience);

  const std::vector<PortAddress> ports_;
  const ClientOptions options_;
  std::unique_ptr<asio::io_context> context_;
  std::vector<std::unique_ptr<ClientSession>> sessions_;
};

}  // namespace vpfs::control
