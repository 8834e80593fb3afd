// The operations on names: what exists, and what it is called.

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "base/joined.h"
#include "dataserver/orangefs/operations.h"
#include "dataserver/orangefs/permissions.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Attributes;
using orangefs::Handle;
using orangefs::ObjectType;
using orangefs::Op;
using orangefs::Response;

constexpr std::errc kDenied = std::errc::permission_denied;
constexpr std::uint32_t kChangeEntries = orangefs::kCapWrite | orangefs::kCapExecute;

// The values of Layout::algorithm.
constexpr std::int32_t kLayoutList = 4;
constexpr std::int32_t kLayoutLocal = 5;

// The text that names a server in a layout: its whole alias, as real servers compare it.
std::string alias_text(const std::vector<std::string>& addresses) {
  return joined(addresses, ",");
}

}  // namespace

std::optional<std::vector<std::uint32_t>> Operations::place(const orangefs::CreateRequest& body) {
  const std::uint32_t servers = context_.ranges.servers();
  const std::vector<std::string>& named = body.layout.servers;
  std::vector<std::uint32_t> placement;
  if (body.layout.algorithm == kLayoutList) {
    for (const std::string& alias : named) {
      std::uint32_t i = 0;
      while (i < servers && alias_text(context_.config.servers[i].addresses) != alias) ++i;
      if (i == servers) return std::nullopt;
      if (std::ranges::find(placement, i) == placement.end()) placement.push_back(i);
    }
    if (!placement.empty()) return placement;
  }
  std::uint32_t count = servers;
  if (body.num_datafiles > 0) {
    count = std::min(count, static_cast<std::uint32_t>(body.num_datafiles));
  } else if (context_.config.datafiles != 0) {
    count = std::min(count, static_cast<std::uint32_t>(context_.config.datafiles));
  }
  const bool local = body.layout.algorithm == kLayoutLocal;
  const std::uint32_t first = local ? context_.self : (context_.self + next_first_server_++);
  for (std::uint32_t i = 0; i < count; ++i) placement.push_back((first + i) % servers);
  return placement;
}

Operations::Reply Operations::run(const orangefs::CreateRequest& body, const Request& request) {
  if (!permits(request.capability, orangefs::kCapCreate))
    return ready(failure(Op::create, kDenied));
  orangefs::CreateResponse created;
  if (body.attributes.type == ObjectType::symlink) {
    const Outcome<Handle> link = context_.metadata.create_symlink(body.attributes);
    if (!link) return ready(failure(Op::create, link.error()));
    created.metafile_handle = *link;
    created.attributes = *shown(*link, orangefs::kAttrCommonAll, nullptr);
  } else {
    const std::optional<std::vector<std::uint32_t>> placement = place(body);
    if (!placement) return ready(failure(Op::create, std::errc::invalid_argument));
    const Outcome<Attributes> file =
        context_.metadata.create_file(body.attributes, *placement, &created.metafile_handle);
    if (!file) return ready(failure(Op::create, file.error()));
    created.attributes = *file;
  }
  return settled({.status = 0, .body = std::move(created)});
}

Operations::Reply Operations::run(const orangefs::MkdirRequest& body, const Request& request) {
  if (!permits(request.capability, orangefs::kCapCreate)) return ready(failure(Op::mkdir, kDenied));
  const Outcome<Handle> directory = context_.metadata.create_directory(body.attributes);
  if (!directory) return ready(failure(Op::mkdir, directory.error()));
  return settled(
      {.status = 0, .body = orangefs::MkdirResponse{.handle = *directory, .capability = {}}});
}

// Clients create symbolic links with it: first a handle, then its attributes by SETATTR.
Operations::Reply Operations::run(const orangefs::BatchCreateRequest& body,
                                  const Request& request) {
  constexpr std::uint32_t kMostAtOnce = 1024;
  const std::uint32_t either = orangefs::kCapCreate | orangefs::kCapBatchCreate;
  if ((request.capability.op_mask & either) == 0) return ready(failure(Op::batch_create, kDenied));
  if (body.object_type != ObjectType::symlink || body.count > kMostAtOnce) {
    return ready(failure(Op::batch_create, status_of(EOPNOTSUPP)));
  }
  orangefs::BatchCreateResponse created;
  for (std::uint32_t i = 0; i < body.count; ++i) {
    const Outcome<Handle> link = context_.metadata.create_symlink({});
    if (!link) return ready(failure(Op::batch_create, link.error()));
    created.handles.push_back(*link);
  }
  return settled({.status = 0, .body = std::move(created)});
}

Operations::Reply Operations::run(const orangefs::RemoveRequest& body, const Request& request) {
  if (const auto allowed = check_hinted(request, orangefs::kCapRemove); !allowed) {
    return ready(failure(Op::remove, allowed.error()));
  }
  if (!is_ours(body.handle)) {
    return ready(failure(Op::remove, status_of(ENOENT)));
  }
  if (HandleRanges::is_datafile(body.handle)) {
    return ready(answer(Op::remove, status_of(context_.datafiles.remove(body.handle))));
  }
  const Outcome<Attributes> removed = context_.metadata.remove(body.handle);
  if (!removed) return ready(failure(Op::remove, removed.error()));
  // Clients remove the datafiles themselves, before this (TREE_REMOVE).
  return settled(answer(Op::remove, 0));
}

Operations::Reply Operations::run(const orangefs::LookupPathRequest& body,
                                  const Request& /*request*/) {
  orangefs::LookupPathResponse found;
  Handle directory = body.starting_handle;
  std::string_view rest = body.path;
  std::errc problem = std::errc::invalid_argument;
  for (;;) {
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    if (rest.empty()) break;
    const std::string_view name = rest.substr(0, rest.find('/'));
    const Outcome<Attributes> object = context_.metadata.attributes(directory);
    if (!object) {
      problem = object.error();
      break;
    }
    if (object->type != ObjectType::directory) {
      problem = std::errc::not_a_directory;
      break;
    }
    if ((permitted_operations(*object, body.credential) & orangefs::kCapExecute) == 0) {
      problem = kDenied;
      break;
    }
    const Outcome<Handle> entry =
        context_.metadata.find_entry(object->distributed.dirdata_handles.front(), name);
    if (!entry) {
      problem = entry.error();
      break;
    }
    found.handles.push_back(*entry);
    rest.remove_prefix(name.size());
    if (!is_ours(*entry)) break;
    Outcome<Attributes> attributes = shown(*entry, body.attribute_mask, &body.credential);
    if (!attributes) break;
    const bool may_go_on = attributes->type == ObjectType::directory;
    found.attributes.push_back(std::move(*attributes));
    if (!may_go_on) break;
    directory = *entry;
  }
  // A partial result is an answer; the client goes on from there and meets the problem itself.
  if (found.handles.empty()) {
    return ready(failure(Op::lookup_path, problem));
  }
  return ready(Response{.status = 0, .body = std::move(found)});
}

Operations::Reply Operations::run(const orangefs::CrdirentRequest& body, const Request& request) {
  if (!permits(request.capability, kChangeEntries)) return ready(failure(Op::crdirent, kDenied));
  const Outcome<void> added =
      context_.metadata.add_entry(body.dirdata_handle, body.name, body.new_handle);
  if (!added) return ready(failure(Op::crdirent, added.error()));
  return settled(answer(Op::crdirent, 0));
}

Operations::Reply Operations::run(const orangefs::RmdirentRequest& body, const Request& request) {
  if (!permits(request.capability, kChangeEntries)) return ready(failure(Op::rmdirent, kDenied));
  const Outcome<Handle> entry = context_.metadata.remove_entry(body.dirdata_handle, body.name);
  if (!entry) return ready(failure(Op::rmdirent, entry.error()));
  return settled(
      {.status = 0, .body = orangefs::HandleResponse{.op = Op::rmdirent, .handle = *entry}});
}

Operations::Reply Operations::run(const orangefs::ChdirentRequest& body, const Request& request) {
  if (!permits(request.capability, kChangeEntries)) return ready(failure(Op::chdirent, kDenied));
  const Outcome<Handle> before =
      context_.metadata.change_entry(body.dirdata_handle, body.name, body.new_handle);
  if (!before) return ready(failure(Op::chdirent, before.error()));
  return settled(
      {.status = 0, .body = orangefs::HandleResponse{.op = Op::chdirent, .handle = *before}});
}

Operations::Reply Operations::run(const orangefs::ReaddirRequest& body, const Request& request) {
  if (!permits(request.capability, orangefs::kCapRead)) return ready(failure(Op::readdir, kDenied));
  Outcome<orangefs::ReaddirResponse> listing =
      context_.metadata.entries(body.handle, body.token, body.dirent_limit);
  if (!listing) return ready(failure(Op::readdir, listing.error()));
  return ready(Response{.status = 0, .body = std::move(*listing)});
}

}  // namespace vpfs::dataserver
