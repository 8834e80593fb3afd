#pragma once

#include <memory>
#include <utility>

#include "client/orangefs/calls/caller.h"
#include "client/orangefs/session.h"

namespace vpfs::client {

// A session as one caller uses it. Copies share the session.
class CallerSession {
 public:
  CallerSession(std::shared_ptr<Session> session, CallerPtr caller)
      : session_(std::move(session)), caller_(std::move(caller)) {}

  [[nodiscard]] Session& session() const { return *session_; }
  [[nodiscard]] const std::shared_ptr<Session>& shared_session() const { return session_; }
  [[nodiscard]] const CallerPtr& caller() const { return caller_; }
  [[nodiscard]] const MountConfig& config() const { return session_->config(); }

  [[nodiscard]] orangefs::Credential credential() const { return session_->credential(*caller_); }
  [[nodiscard]] orangefs::Hints hints(orangefs::Handle object) const {
    return Session::hints(*caller_, object);
  }
  // Sends a request about `object` to a server, or to the one that holds `target`.
  [[nodiscard]] net::Task<Result<orangefs::Response>> ask_server(std::size_t server,
                                                                 orangefs::Handle object,
                                                                 orangefs::Capability capability,
                                                                 orangefs::RequestBody body,
                                                                 bool* repeated = nullptr) const;
  [[nodiscard]] net::Task<Result<orangefs::Response>> ask(orangefs::Handle target,
                                                          orangefs::Handle object,
                                                          orangefs::Capability capability,
                                                          orangefs::RequestBody body,
                                                          bool* repeated = nullptr) const;

 private:
  std::shared_ptr<Session> session_;
  CallerPtr caller_;
};

}  // namespace vpfs::client
