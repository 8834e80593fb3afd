#pragma once

#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "dataserver/orangefs/server_context.h"
#include "dataserver/orangefs/status.h"
#include "protocols/orangefs/message.h"

namespace vpfs::dataserver {

// Every operation but IO and SMALL_IO: a request in, its response out.
class Operations {
 public:
  explicit Operations(ServerContext& context) : context_(context) {}

  // `request` lives until the task ends.
  [[nodiscard]] net::Task<orangefs::Response> handle(const orangefs::Request& request);

 private:
  using Reply = net::Task<orangefs::Response>;
  using Request = orangefs::Request;

  // The name space: name_space_operations.cc.
  Reply run(const orangefs::CreateRequest& body, const Request& request);
  Reply run(const orangefs::MkdirRequest& body, const Request& request);
  Reply run(const orangefs::BatchCreateRequest& body, const Request& request);
  Reply run(const orangefs::RemoveRequest& body, const Request& request);
  Reply run(const orangefs::LookupPathRequest& body, const Request& request);
  Reply run(const orangefs::CrdirentRequest& body, const Request& request);
  Reply run(const orangefs::RmdirentRequest& body, const Request& request);
  Reply run(const orangefs::ChdirentRequest& body, const Request& request);
  Reply run(const orangefs::ReaddirRequest& body, const Request& request);
  // Attributes: attribute_operations.cc.
  Reply run(const orangefs::GetattrRequest& body, const Request& request);
  Reply run(const orangefs::SetattrRequest& body, const Request& request);
  Reply run(const orangefs::ListattrRequest& body, const Request& request);
  Reply run(const orangefs::UnstuffRequest& body, const Request& request);
  Reply run(const orangefs::TruncateRequest& body, const Request& request);
  Reply run(const orangefs::FlushRequest& body, const Request& request);
  // Extended attributes: extended_operations.cc.
  Reply run(const orangefs::GeteattrRequest& body, const Request& request);
  Reply run(const orangefs::SeteattrRequest& body, const Request& request);
  Reply run(const orangefs::DeleattrRequest& body, const Request& request);
  Reply run(const orangefs::ListeattrRequest& body, const Request& request);
  // Requests about objects on several servers: tree_operations.cc.
  Reply run(const orangefs::TreeRemoveRequest& body, const Request& request);
  Reply run(const orangefs::TreeGetFileSizeRequest& body, const Request& request);
  Reply run(const orangefs::TreeGetattrRequest& body, const Request& request);
  Reply run(const orangefs::TreeSetattrRequest& body, const Request& request);
  // The server itself: system_operations.cc.
  Reply run(const orangefs::EmptyRequest& body, const Request& request);
  Reply run(const orangefs::StatfsRequest& body, const Request& request);
  Reply run(const orangefs::MgmtSetparamRequest& body, const Request& request);
  Reply run(const orangefs::MgmtIterateHandlesRequest& body, const Request& request);
  // Everything else is unsupported.
  template <typename Body>
  Reply run(const Body& body, const Request& request);

  // The attributes of an object of this server as a GETATTR with `mask` shows them, datafiles
  // included. With a credential and the mask bit they hold a capability.
  [[nodiscard]] Outcome<orangefs::Attributes> shown(orangefs::Handle handle, std::uint32_t mask,
                                                    const orangefs::Credential* credential);
  // The servers of a new file's datafiles; nothing if its layout names an alias that is not there.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> place(
      const orangefs::CreateRequest& body);
  [[nodiscard]] bool is_ours(orangefs::Handle handle) const;
  // The reply to an operation that changes nothing.
  Reply ready(orangefs::Response response);
  // Waits until all changes are durable. If that fails, the response is the error.
  Reply settled(orangefs::Response response);
  [[nodiscard]] Outcome<void> may_set(const orangefs::Attributes& object,
                                      const orangefs::SetattrRequest& body, const Request& request);
  // For each server the handles that it stores, as indices.
  using HandlesByServer = std::vector<std::vector<std::size_t>>;
  // EINVAL if no server has a handle.
  [[nodiscard]] Outcome<HandlesByServer> by_server(std::span<const orangefs::Handle> handles) const;
  // For each server its answer about its handles, or why there is none.
  template <typename Part>
  using Parts = std::vector<std::expected<Part, orangefs::Status>>;
  // Asks all other servers that hold some of the handles, at once.
  template <typename Part, typename Body>
  [[nodiscard]] net::Task<Parts<Part>> ask_others(const Body& body, const Request& request,
                                                  const HandlesByServer& lists);

  ServerContext& context_;
  std::uint32_t next_first_server_ = 0;
};

[[nodiscard]] orangefs::Response failure(orangefs::Op op, orangefs::Status status);
[[nodiscard]] orangefs::Response failure(orangefs::Op op, std::errc error);
// Status only; zero is success.
[[nodiscard]] orangefs::Response answer(orangefs::Op op, orangefs::Status status);

}  // namespace vpfs::dataserver
