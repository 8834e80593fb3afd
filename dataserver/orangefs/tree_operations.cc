// Operations whose handles are on several servers. This server does its part and asks the others
// for theirs.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "dataserver/orangefs/operations.h"
#include "dataserver/orangefs/permissions.h"
#include "net/gather.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Attributes;
using orangefs::Handle;
using orangefs::Op;
using orangefs::Response;
using orangefs::Status;

std::vector<Handle> pick(const std::vector<Handle>& handles,
                         const std::vector<std::size_t>& which) {
  std::vector<Handle> picked;
  picked.reserve(which.size());
  for (const std::size_t index : which) picked.push_back(handles[index]);
  return picked;
}

// The same request about some of its handles.
template <typename Body>
orangefs::Request part_of(const orangefs::Request& request, const Body& body,
                          const std::vector<std::size_t>& which) {
  Body part = body;
  part.handles = pick(body.handles, which);
  return {.capability = request.capability, .hints = request.hints, .body = std::move(part)};
}

// How many objects a response is about.
std::size_t count_of(const orangefs::TreeGetFileSizeResponse& part) {
  return std::min(part.sizes.size(), part.errors.size());
}
std::size_t count_of(const orangefs::TreeStatusResponse& part) {
  return part.statuses.size();
}
std::size_t count_of(const orangefs::TreeGetattrResponse& part) {
  return std::min(part.attributes.size(), part.errors.size());
}

}  // namespace

template <typename Part, typename Body>
net::Task<Operations::Parts<Part>> Operations::ask_others(const Body& body, const Request& request,
                                                          const HandlesByServer& lists) {
  std::vector<std::uint32_t> others;
  for (std::uint32_t server = 0; server < lists.size(); ++server) {
    if (server != context_.self && !lists[server].empty()) others.push_back(server);
  }
  const auto ask_one = [&](std::size_t i) {
    return context_.peers.call(others[i], part_of(request, body, lists[others[i]]));
  };
  auto responses = co_await net::gather(others.size(), kMostServers, ask_one);
  Parts<Part> parts(lists.size());
  for (std::size_t i = 0; i < others.size(); ++i) {
    std::expected<Part, Status>& part = parts[others[i]];
    if (!responses[i]) {
      part = std::unexpected(responses[i].error());
      continue;
    }
    auto* const answer = std::get_if<Part>(&responses[i]->body);
    if (answer != nullptr && count_of(*answer) == lists[others[i]].size()) {
      part = std::move(*answer);
    } else {
      part = std::unexpected(status_of(EPROTO));
    }
  }
  co_return parts;
}

Operations::Reply Operations::run(const orangefs::TreeGetFileSizeRequest& body,
                                  const Request& request) {
  const auto lists = by_server(body.handles);
  if (!lists) co_return failure(Op::tree_get_file_size, lists.error());
  orangefs::TreeGetFileSizeResponse all;
  all.caller_index = body.caller_index;
  all.sizes.resize(body.handles.size());
  all.errors.resize(body.handles.size());
  const auto parts = co_await ask_others<orangefs::TreeGetFileSizeResponse>(body, request, *lists);
  for (std::uint32_t server = 0; server < lists->size(); ++server) {
    const std::vector<std::size_t>& mine = (*lists)[server];
    if (mine.empty()) continue;
    if (server == context_.self) {
      for (const std::size_t i : mine) {
        const Outcome<std::int64_t> size = context_.datafiles.size(body.handles[i]);
        all.sizes[i] = size.value_or(0);
        all.errors[i] = status_of(size);
      }
      continue;
    }
    const auto& part = parts[server];
    for (std::size_t k = 0; k < mine.size(); ++k) {
      all.sizes[mine[k]] = part ? part->sizes[k] : 0;
      all.errors[mine[k]] = part ? part->errors[k] : part.error();
    }
  }
  co_return Response{.status = 0, .body = std::move(all)};
}

Operations::Reply Operations::run(const orangefs::TreeRemoveRequest& body, const Request& request) {
  if (const auto allowed = check_hinted(request, orangefs::kCapRemove); !allowed) {
    co_return failure(Op::tree_remove, allowed.error());
  }
  const auto lists = by_server(body.handles);
  if (!lists) co_return failure(Op::tree_remove, lists.error());
  orangefs::TreeStatusResponse all{.op = Op::tree_remove,
                                   .caller_index = body.caller_index,
                                   .statuses = std::vector<Status>(body.handles.size())};
  const auto parts = co_await ask_others<orangefs::TreeStatusResponse>(body, request, *lists);
  for (std::uint32_t server = 0; server < lists->size(); ++server) {
    const std::vector<std::size_t>& mine = (*lists)[server];
    if (mine.empty()) continue;
    if (server == context_.self) {
      for (const std::size_t i : mine) {
        all.statuses[i] = HandleRanges::is_datafile(body.handles[i])
                              ? status_of(context_.datafiles.remove(body.handles[i]))
                              : status_of(EINVAL);
      }
      continue;
    }
    const auto& part = parts[server];
    for (std::size_t k = 0; k < mine.size(); ++k) {
      all.statuses[mine[k]] = part ? part->statuses[k] : part.error();
    }
  }
  co_return Response{.status = 0, .body = std::move(all)};
}

Operations::Reply Operations::run(const orangefs::TreeGetattrRequest& body,
                                  const Request& request) {
  const auto lists = by_server(body.handles);
  if (!lists) co_return failure(Op::tree_getattr, lists.error());
  orangefs::TreeGetattrResponse all;
  all.caller_index = body.caller_index;
  all.attributes.resize(body.handles.size());
  all.errors.resize(body.handles.size());
  const auto parts = co_await ask_others<orangefs::TreeGetattrResponse>(body, request, *lists);
  for (std::uint32_t server = 0; server < lists->size(); ++server) {
    const std::vector<std::size_t>& mine = (*lists)[server];
    if (mine.empty()) continue;
    if (server == context_.self) {
      for (const std::size_t i : mine) {
        Outcome<Attributes> object = shown(body.handles[i], body.attribute_mask, &body.credential);
        all.errors[i] = status_of(object);
        if (object) all.attributes[i] = std::move(*object);
      }
      continue;
    }
    const auto& part = parts[server];
    for (std::size_t k = 0; k < mine.size(); ++k) {
      all.errors[mine[k]] = part ? part->errors[k] : part.error();
      if (part) all.attributes[mine[k]] = part->attributes[k];
    }
  }
  co_return Response{.status = 0, .body = std::move(all)};
}

// Only directories' dirdata are set so, and those are on the directory's server.
Operations::Reply Operations::run(const orangefs::TreeSetattrRequest& body,
                                  const Request& request) {
  if (!permits(request.capability, orangefs::kCapSetattr)) {
    co_return failure(Op::tree_setattr, status_of(EACCES));
  }
  orangefs::TreeStatusResponse all{
      .op = Op::tree_setattr, .caller_index = body.caller_index, .statuses = {}};
  for (const Handle handle : body.handles) {
    all.statuses.push_back(status_of(context_.metadata.set_attributes(handle, body.attributes)));
  }
  Response response{.status = 0, .body = std::move(all)};
  co_return co_await settled(std::move(response));
}

}  // namespace vpfs::dataserver
