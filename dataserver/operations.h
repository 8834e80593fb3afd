#pragma once

#include <span>
#include <vector>

#include "dataserver/server_context.h"
#include "protocols/pvfs2/message.h"

namespace vpfs::dataserver {

// Every operation but IO and SMALL_IO: a request in, its response out.
class Operations {
 public:
  explicit Operations(ServerContext& context) : context_(context) {}

  // `request` lives until the task ends.
  [[nodiscard]] net::Task<pvfs2::Response> handle(const pvfs2::Request& request);

 private:
  using Reply = net::Task<pvfs2::Response>;
  using Request = pvfs2::Request;

  // The name space: name_space_operations.cc.
  Reply run(const pvfs2::CreateRequest& body, const Request& request);
  Reply run(const pvfs2::MkdirRequest& body, const Request& request);
  Reply run(const pvfs2::BatchCreateRequest& body, const Request& request);
  Reply run(const pvfs2::RemoveRequest& body, const Request& request);
  Reply run(const pvfs2::LookupPathRequest& body, const Request& request);
  Reply run(const pvfs2::CrdirentRequest& body, const Request& request);
  Reply run(const pvfs2::RmdirentRequest& body, const Request& request);
  Reply run(const pvfs2::ChdirentRequest& body, const Request& request);
  Reply run(const pvfs2::ReaddirRequest& body, const Request& request);
  // Attributes: attribute_operations.cc.
  Reply run(const pvfs2::GetattrRequest& body, const Request& request);
  Reply run(const pvfs2::SetattrRequest& body, const Request& request);
  Reply run(const pvfs2::ListattrRequest& body, const Request& request);
  Reply run(const pvfs2::UnstuffRequest& body, const Request& request);
  Reply run(const pvfs2::TruncateRequest& body, const Request& request);
  Reply run(const pvfs2::FlushRequest& body, const Request& request);
  // Extended attributes: extended_operations.cc.
  Reply run(const pvfs2::GeteattrRequest& body, const Request& request);
  Reply run(const pvfs2::SeteattrRequest& body, const Request& request);
  Reply run(const pvfs2::DeleattrRequest& body, const Request& request);
  Reply run(const pvfs2::ListeattrRequest& body, const Request& request);
  // Requests about objects on several servers: tree_operations.cc.
  Reply run(const pvfs2::TreeRemoveRequest& body, const Request& request);
  Reply run(const pvfs2::TreeGetFileSizeRequest& body, const Request& request);
  Reply run(const pvfs2::TreeGetattrRequest& body, const Request& request);
  Reply run(const pvfs2::TreeSetattrRequest& body, const Request& request);
  // The server itself: system_operations.cc.
  Reply run(const pvfs2::EmptyRequest& body, const Request& request);
  Reply run(const pvfs2::StatfsRequest& body, const Request& request);
  Reply run(const pvfs2::MgmtSetparamRequest& body, const Request& request);
  Reply run(const pvfs2::MgmtIterateHandlesRequest& body, const Request& request);
  // What this server does not do.
  template <typename Body>
  Reply run(const Body& body, const Request& request);

  // The attributes of an object of this server as a GETATTR with `mask` shows them, datafiles
  // included. With a credential and the mask bit they hold a capability.
  [[nodiscard]] Outcome<pvfs2::Attributes> shown(pvfs2::Handle handle, std::uint32_t mask,
                                                 const pvfs2::Credential* credential);
  [[nodiscard]] std::vector<std::uint32_t> place(const pvfs2::CreateRequest& body);
  [[nodiscard]] bool is_ours(pvfs2::Handle handle) const;
  // The reply to an operation that needs no waiting.
  Reply ready(pvfs2::Response response);
  // As ready(), once all changes are durable; or the response says why they are not.
  Reply settled(pvfs2::Response response);
  [[nodiscard]] pvfs2::Status may_set(const pvfs2::Attributes& object,
                                      const pvfs2::SetattrRequest& body, const Request& request);
  // Which of `handles` (by index) lie where: one list per server; EINVAL when one is nobody's.
  [[nodiscard]] Outcome<std::vector<std::vector<std::size_t>>> by_server(
      std::span<const pvfs2::Handle> handles) const;

  ServerContext& context_;
  std::uint32_t next_first_server_ = 0;
};

[[nodiscard]] pvfs2::Response failure(pvfs2::Op op, pvfs2::Status status);
// Status only; zero is success.
[[nodiscard]] pvfs2::Response answer(pvfs2::Op op, pvfs2::Status status);

}  // namespace vpfs::dataserver
