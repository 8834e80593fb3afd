#include "client/orangefs/object.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/result.h"
#include "client/orangefs/strip_walk.h"
#include "protocols/orangefs/datafile_layout.h"
#include "protocols/orangefs/striping.h"

namespace vpfs::client {
namespace {

constexpr std::size_t kMostInList = 60;  // PVFS_REQ_LIMIT_LISTATTR
// Real files have less than 1024, and their capability has one handle more.
constexpr std::size_t kMostDatafiles = 4096;
constexpr std::size_t kOtherHandles = 8;

orangefs::Placement placement(std::size_t index, std::size_t count) {
  return {.server_nr = static_cast<std::uint32_t>(index),
          .server_ct = static_cast<std::uint32_t>(count)};
}

// The same request body for each of `handles`, changed by `adapt(body, index)`.
template <typename Body, typename Adapt>
Result<std::vector<Session::Addressed>> for_each_handle(
    const CallerSession& session, const std::vector<orangefs::Handle>& handles,
    orangefs::Handle object, const orangefs::Capability& capability, Adapt adapt) {
  std::vector<Session::Addressed> requests;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const Result<std::size_t> server = session.session().server_of(handles[i]);
    VPFS_TRY(server);
    Body body;
    body.fs_id = session.config().fs_id;
    adapt(body, i);
    requests.push_back(
        {.server = *server,
         .request = {
             .capability = capability, .hints = session.hints(object), .body = std::move(body)}});
  }
  return requests;
}

// How much each datafile has of a file of `size` bytes.
Result<std::vector<std::int64_t>> lengths_of_parts(const orangefs::Attributes& metafile,
                                                   std::uint64_t size) {
  std::vector<std::int64_t> lengths;
  const std::size_t count = metafile.datafiles.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<std::int64_t> length = orangefs::physical_offset(
        metafile.distribution, placement(i, count), static_cast<std::int64_t>(size));
    if (!length) {
      return fail("the size is past what a file can hold",
                  std::make_error_code(std::errc::file_too_large));
    }
    lengths.push_back(*length);
  }
  return lengths;
}

}  // namespace

net::Task<Result<orangefs::Attributes>> get_attributes(const CallerSession& session,
                                                       orangefs::Handle handle,
                                                       std::uint32_t mask) {
  Caches* const caches = mask == kEverything ? session.session().caches() : nullptr;
  Caches::AttributesTicket ticket;
  if (caches != nullptr) ticket = caches->attributes_ticket(handle, session.session().now());
  orangefs::GetattrRequest body{.handle = handle,
                                .fs_id = session.config().fs_id,
                                .attribute_mask = mask,
                                .credential = session.credential()};
  orangefs::Capability none;
  Result<orangefs::Response> response =
      co_await session.ask(handle, handle, std::move(none), std::move(body));
  VPFS_CO_TRY(response);
  orangefs::Attributes& found = std::get<orangefs::AttributesResponse>(response->body).attributes;
  if (caches != nullptr) {
    caches->put_attributes(ticket, handle, session.caller(),
                           std::make_shared<const orangefs::Attributes>(found));
  }
  co_return std::move(found);
}

net::Task<std::vector<Result<orangefs::Attributes>>> list_attributes(
    const CallerSession& session, std::vector<orangefs::Handle> handles, std::uint32_t mask) {
  std::vector<Result<orangefs::Attributes>> results(handles.size());
  // Which handles each request is about, as indices.
  std::vector<std::vector<std::size_t>> lists;
  std::vector<Session::Addressed> requests;
  std::vector<std::size_t> open_list(session.config().servers.size(), handles.size());
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const Result<std::size_t> server = session.session().server_of(handles[i]);
    if (!server) {
      results[i] = std::unexpected(server.error());
      continue;
    }
    std::size_t& list = open_list[*server];
    if (list == handles.size() || lists[list].size() == kMostInList) {
      list = lists.size();
      lists.emplace_back();
      orangefs::ListattrRequest body{
          .fs_id = session.config().fs_id, .attribute_mask = mask, .handles = {}};
      requests.push_back(
          {.server = *server,
           .request = {
               .capability = {}, .hints = session.hints(kNoObject), .body = std::move(body)}});
    }
    lists[list].push_back(i);
    std::get<orangefs::ListattrRequest>(requests[list].request.body).handles.push_back(handles[i]);
  }
  auto responses = co_await session.session().call_all(std::move(requests));
  for (std::size_t list = 0; list < lists.size(); ++list) {
    Result<orangefs::Response>& response = responses[list];
    auto* const answer =
        response ? std::get_if<orangefs::ListattrResponse>(&response->body) : nullptr;
    const bool whole = answer != nullptr && answer->errors.size() == lists[list].size() &&
                       answer->attributes.size() == lists[list].size();
    for (std::size_t k = 0; k < lists[list].size(); ++k) {
      Result<orangefs::Attributes>& result = results[lists[list][k]];
      if (!response) {
        result = std::unexpected(response.error());
      } else if (!whole) {
        result = fail("LISTATTR: not about all objects", std::make_error_code(std::errc::io_error));
      } else if (answer->errors[k] != 0) {
        result = status_error("LISTATTR", answer->errors[k]);
      } else {
        result = std::move(answer->attributes[k]);
      }
    }
  }
  co_return results;
}

net::Task<Result<HeldAttributes>> held_attributes(const CallerSession& session,
                                                  orangefs::Handle handle, std::uint32_t mask) {
  if (Caches* const caches = session.session().caches()) {
    Caches::AttributesPtr held =
        caches->attributes(handle, *session.caller(), session.session().now());
    if (held) co_return HeldAttributes{.attributes = std::move(held), .cached = true};
    mask = kEverything;
  }
  Result<orangefs::Attributes> found = co_await get_attributes(session, handle, mask);
  VPFS_CO_TRY(found);
  co_return HeldAttributes{
      .attributes = std::make_shared<const orangefs::Attributes>(std::move(*found)),
      .cached = false};
}

bool may_be_stale(const Error& error) {
  if (is_transport_error(error)) return false;
  const int number = errno_of(error);
  return number == EACCES || number == EPERM || number == EAGAIN || number == ENOENT;
}

bool is_stuffed(const orangefs::Attributes& metafile) {
  return (metafile.mask & orangefs::kAttrMetaUnstuffed) == 0;
}

Result<void> check_extent(const orangefs::Attributes& metafile) {
  const std::size_t datafiles = metafile.datafiles.size();
  if (datafiles <= kMostDatafiles &&
      metafile.capability.handles.size() <= datafiles + kOtherHandles) {
    return {};
  }
  return fail("a file has too many datafiles or handles",
              std::make_error_code(std::errc::io_error));
}

Result<void> check_dirdata(const orangefs::Attributes& directory) {
  if (directory.distributed.dirdata_handles.size() <= kMostDatafiles) return {};
  return fail("a directory has too many parts", std::make_error_code(std::errc::io_error));
}

Result<std::int64_t> strip_size_of(const orangefs::Attributes& metafile) {
  if (const auto* stripes = std::get_if<orangefs::SimpleStripe>(&metafile.distribution)) {
    const auto datafiles =
        static_cast<std::int64_t>(std::max<std::size_t>(metafile.datafiles.size(), 1));
    const bool sound = stripes->strip_size > 0 &&
                       stripes->strip_size <= orangefs::DatafileLayout::kMostLimit / datafiles;
    if (sound) return stripes->strip_size;
    return fail("a file's strip size is not positive or too large",
                std::make_error_code(std::errc::io_error));
  }
  if (std::holds_alternative<orangefs::BasicDistribution>(metafile.distribution)) return 0;
  return fail("a file has a distribution other than simple_stripe and basic_dist",
              std::make_error_code(std::errc::not_supported));
}

Result<void> all_good(const std::vector<Result<orangefs::Response>>& results) {
  for (const Result<orangefs::Response>& result : results) {
    if (!result) return std::unexpected(result.error());
  }
  return {};
}

net::Task<Result<std::uint64_t>> file_size(const CallerSession& session, orangefs::Handle handle,
                                           orangefs::Attributes metafile) {
  if (is_stuffed(metafile)) {
    co_return static_cast<std::uint64_t>(std::max(metafile.stuffed_size, 0));
  }
  const Result<std::int64_t> strip_size = strip_size_of(metafile);
  VPFS_CO_TRY(strip_size);
  VPFS_CO_TRY(check_extent(metafile));
  const std::vector<orangefs::Handle>& datafiles = metafile.datafiles;
  // Each server is asked for its own part; nothing then depends on connections between servers.
  Result<std::vector<Session::Addressed>> requests =
      for_each_handle<orangefs::TreeGetFileSizeRequest>(
          session, datafiles, handle, {},
          [&](orangefs::TreeGetFileSizeRequest& body, std::size_t i) {
            body.credential = session.credential();
            body.handles = {datafiles[i]};
          });
  VPFS_CO_TRY(requests);
  const auto results = co_await session.session().call_all(std::move(*requests));
  VPFS_CO_TRY(all_good(results));
  std::int64_t size = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& body = std::get<orangefs::TreeGetFileSizeResponse>(results[i]->body);
    if (!body.errors.empty() && body.errors[0] != 0) {
      co_return status_error("size of a datafile", body.errors[0]);
    }
    if (body.sizes.empty()) continue;
    size = std::max(size, logical_end(*strip_size, placement(i, results.size()), body.sizes[0]));
  }
  co_return static_cast<std::uint64_t>(size);
}

net::Task<Result<orangefs::Attributes>> unstuff(const CallerSession& session,
                                                orangefs::Handle handle,
                                                orangefs::Capability capability) {
  constexpr std::uint32_t kMask = orangefs::kAttrType | orangefs::kAttrMetaDistribution |
                                  orangefs::kAttrMetaDatafiles |
                                  orangefs::kAttrMetaMirrorDatafiles | orangefs::kAttrCapability;
  orangefs::UnstuffRequest body{.handle = handle,
                                .fs_id = session.config().fs_id,
                                .attribute_mask = kMask,
                                .credential = session.credential()};
  Result<orangefs::Response> response =
      co_await session.ask(handle, handle, std::move(capability), std::move(body));
  if (Caches* const caches = session.session().caches()) caches->forget(handle);
  VPFS_CO_TRY(response);
  co_return std::move(std::get<orangefs::AttributesResponse>(response->body).attributes);
}

net::Task<Result<void>> truncate(const CallerSession& session, orangefs::Handle handle,
                                 orangefs::Attributes metafile, std::uint64_t size) {
  const Result<std::int64_t> strip_size = strip_size_of(metafile);
  VPFS_CO_TRY(strip_size);
  if (is_stuffed(metafile) && *strip_size > 0 && size > static_cast<std::uint64_t>(*strip_size)) {
    Result<orangefs::Attributes> larger = co_await unstuff(session, handle, metafile.capability);
    VPFS_CO_TRY(larger);
    metafile = std::move(*larger);
  }
  VPFS_CO_TRY(check_extent(metafile));
  const std::vector<orangefs::Handle>& datafiles = metafile.datafiles;
  const Result<std::vector<std::int64_t>> lengths = lengths_of_parts(metafile, size);
  VPFS_CO_TRY(lengths);
  Result<std::vector<Session::Addressed>> requests = for_each_handle<orangefs::TruncateRequest>(
      session, datafiles, handle, metafile.capability,
      [&](orangefs::TruncateRequest& body, std::size_t i) {
        body.handle = datafiles[i];
        body.size = (*lengths)[i];
      });
  VPFS_CO_TRY(requests);
  const auto results = co_await session.session().call_all(std::move(*requests));
  if (Caches* const caches = session.session().caches()) caches->forget(handle);
  co_return all_good(results);
}

net::Task<Result<void>> flush(const CallerSession& session, orangefs::Handle handle,
                              std::vector<orangefs::Handle> datafiles) {
  if (datafiles.size() > kMostDatafiles) {
    co_return fail("a file has too many datafiles", std::make_error_code(std::errc::io_error));
  }
  datafiles.push_back(handle);
  Result<std::vector<Session::Addressed>> requests = for_each_handle<orangefs::FlushRequest>(
      session, datafiles, handle, {},
      [&](orangefs::FlushRequest& body, std::size_t i) { body.handle = datafiles[i]; });
  VPFS_CO_TRY(requests);
  co_return all_good(co_await session.session().call_all(std::move(*requests)));
}

}  // namespace vpfs::client
