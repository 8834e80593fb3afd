#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/async.h"
#include "protocols/protocol.h"
#include "proxy/client_address.h"
#include "proxy/dispatcher.h"
#include "proxy/identifier.h"
#include "proxy/shared_state.h"
#include "proxy/shown_identities.h"
#include "proxy/worker_settings.h"
#include "stage/rules/address.h"

namespace vpfs::proxy {

// Finds where the requests of one connection belong, by its address, its node and their own
// contents. Belongs to a session.
class ClientIdentity {
 public:
  // All references but `client` outlive it.
  ClientIdentity(const net::Endpoint& client, SharedState& shared, Dispatcher& dispatcher,
                 Identifier& identifier)
      : endpoint_(client),
        address_(address_of(client.address())),
        shared_(shared),
        dispatcher_(dispatcher),
        identifier_(identifier) {}
  ~ClientIdentity() { leave(); }
  ClientIdentity(const ClientIdentity&) = delete;
  ClientIdentity& operator=(const ClientIdentity&) = delete;

  // `hint(name)` returns the value of one of the request's hints, or nothing. Counts unknown and
  // refused values; logs the first refusals of the proxy.
  template <typename Hint>
  [[nodiscard]] Belonging identify(const IoDescription& io, Hint hint,
                                   const WorkerSettings& settings, TimePoint now) {
    const stage::Identity identity = {.kind = io.kind,
                                      .file_system = io.file_system,
                                      .uid = user_of(io, settings, now),
                                      .node = io.node,
                                      .target = io.target,
                                      .owner = io.owner,
                                      .directory = io.directory};
    const Belonging who = identifier_.identify(settings, address_, identity, hint, now);
    if (who.name_refused || who.job_not_registered) count_refusals(who);
    shown_.saw(identity, who, [&] { return hint(std::string(stage::kJobHint)); });
    return who;
  }

  // Joins the connections of the client's node if they are serial: `node` is
  // Conversation::serial_client(). `server_port` tells connections to several data servers apart.
  // Only the first call with a node has an effect.
  void join(std::optional<std::uint32_t> node, std::optional<std::uint16_t> server_port);
  void leave();
  // kNoClient until it has joined.
  [[nodiscard]] stage::ClientId id() const { return id_; }

  [[nodiscard]] const net::Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] const ShownIdentities& shown() const { return shown_; }
  [[nodiscard]] const stage::Address& address() const { return address_; }

 private:
  [[nodiscard]] std::optional<std::uint32_t> user_of(const IoDescription& io,
                                                     const WorkerSettings& settings, TimePoint now);
  void count_refusals(const Belonging& who);

  const net::Endpoint endpoint_;
  const stage::Address address_;
  SharedState& shared_;
  Dispatcher& dispatcher_;
  Identifier& identifier_;
  ShownIdentities shown_;
  stage::ClientId id_ = stage::kNoClient;
  // The last open file that was told, its user, and when.
  std::uint64_t seen_file_ = 0;
  std::uint32_t seen_uid_ = 0;
  TimePoint told_at_ = {};
};

}  // namespace vpfs::proxy
