#include "client/object.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "client/strip_walk.h"
#include "protocols/pvfs2/striping.h"

namespace vpfs::client {
namespace {

pvfs2::Placement placement(std::size_t index, std::size_t count) {
  return {.server_nr = static_cast<std::uint32_t>(index),
          .server_ct = static_cast<std::uint32_t>(count)};
}

// The same request body for each of `handles`, changed by `adapt(body, index)`.
template <typename Body, typename Adapt>
Result<std::vector<Session::Addressed>> for_each_handle(const Session& session,
                                                        const std::vector<pvfs2::Handle>& handles,
                                                        pvfs2::Handle object,
                                                        const pvfs2::Capability& capability,
                                                        Adapt adapt) {
  std::vector<Session::Addressed> requests;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const Result<std::size_t> server = session.server_of(handles[i]);
    if (!server) return std::unexpected(server.error());
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

}  // namespace

net::Task<Result<pvfs2::Attributes>> get_attributes(Session& session, pvfs2::Handle handle,
                                                    std::uint32_t mask) {
  const Result<std::size_t> server = session.server_of(handle);
  if (!server) co_return std::unexpected(server.error());
  pvfs2::Request request{.capability = {},
                         .hints = session.hints(handle),
                         .body = pvfs2::GetattrRequest{.handle = handle,
                                                       .fs_id = session.config().fs_id,
                                                       .attribute_mask = mask,
                                                       .credential = session.credential()}};
  Result<pvfs2::Response> response = co_await session.call(*server, std::move(request));
  if (!response) co_return std::unexpected(std::move(response.error()));
  co_return std::move(std::get<pvfs2::AttributesResponse>(response->body).attributes);
}

bool is_stuffed(const pvfs2::Attributes& metafile) {
  return (metafile.mask & pvfs2::kAttrMetaUnstuffed) == 0;
}

Result<std::int64_t> strip_size_of(const pvfs2::Attributes& metafile) {
  if (const auto* stripes = std::get_if<pvfs2::SimpleStripe>(&metafile.distribution)) {
    if (stripes->strip_size > 0) return stripes->strip_size;
    return fail("a file's strip size is not positive", std::make_error_code(std::errc::io_error));
  }
  if (std::holds_alternative<pvfs2::BasicDistribution>(metafile.distribution)) return 0;
  return fail("a file has a distribution other than simple_stripe and basic_dist",
              std::make_error_code(std::errc::not_supported));
}

Result<void> all_good(const std::vector<Result<pvfs2::Response>>& results) {
  for (const Result<pvfs2::Response>& result : results) {
    if (!result) return std::unexpected(result.error());
  }
  return {};
}

net::Task<Result<std::uint64_t>> file_size(Session& session, pvfs2::Handle handle,
                                           pvfs2::Attributes metafile) {
  if (is_stuffed(metafile)) {
    co_return static_cast<std::uint64_t>(std::max(metafile.stuffed_size, 0));
  }
  const Result<std::int64_t> strip_size = strip_size_of(metafile);
  if (!strip_size) co_return std::unexpected(strip_size.error());
  const std::vector<pvfs2::Handle>& datafiles = metafile.datafiles;
  // Each server is asked for its own part; nothing then depends on connections between servers.
  Result<std::vector<Session::Addressed>> requests = for_each_handle<pvfs2::TreeGetFileSizeRequest>(
      session, datafiles, handle, {}, [&](pvfs2::TreeGetFileSizeRequest& body, std::size_t i) {
        body.credential = session.credential();
        body.handles = {datafiles[i]};
      });
  if (!requests) co_return std::unexpected(std::move(requests.error()));
  const auto results = co_await session.call_all(std::move(*requests));
  if (Result<void> good = all_good(results); !good) {
    co_return std::unexpected(std::move(good.error()));
  }
  std::int64_t size = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& body = std::get<pvfs2::TreeGetFileSizeResponse>(results[i]->body);
    if (!body.errors.empty() && body.errors[0] != 0) {
      co_return status_error("size of a datafile", body.errors[0]);
    }
    if (body.sizes.empty()) continue;
    size = std::max(size, logical_end(*strip_size, placement(i, results.size()), body.sizes[0]));
  }
  co_return static_cast<std::uint64_t>(size);
}

net::Task<Result<pvfs2::Attributes>> unstuff(Session& session, pvfs2::Handle handle,
                                             pvfs2::Capability capability) {
  const Result<std::size_t> server = session.server_of(handle);
  if (!server) co_return std::unexpected(server.error());
  constexpr std::uint32_t kMask = pvfs2::kAttrType | pvfs2::kAttrMetaDistribution |
                                  pvfs2::kAttrMetaDatafiles | pvfs2::kAttrMetaMirrorDatafiles |
                                  pvfs2::kAttrCapability;
  pvfs2::Request request{.capability = std::move(capability),
                         .hints = session.hints(handle),
                         .body = pvfs2::UnstuffRequest{.handle = handle,
                                                       .fs_id = session.config().fs_id,
                                                       .attribute_mask = kMask,
                                                       .credential = session.credential()}};
  Result<pvfs2::Response> response = co_await session.call(*server, std::move(request));
  if (!response) co_return std::unexpected(std::move(response.error()));
  co_return std::move(std::get<pvfs2::AttributesResponse>(response->body).attributes);
}

net::Task<Result<void>> truncate(Session& session, pvfs2::Handle handle, pvfs2::Attributes metafile,
                                 std::uint64_t size) {
  const Result<std::int64_t> strip_size = strip_size_of(metafile);
  if (!strip_size) co_return std::unexpected(strip_size.error());
  if (is_stuffed(metafile) && *strip_size > 0 && size > static_cast<std::uint64_t>(*strip_size)) {
    Result<pvfs2::Attributes> larger = co_await unstuff(session, handle, metafile.capability);
    if (!larger) co_return std::unexpected(std::move(larger.error()));
    metafile = std::move(*larger);
  }
  const std::vector<pvfs2::Handle>& datafiles = metafile.datafiles;
  Result<std::vector<Session::Addressed>> requests = for_each_handle<pvfs2::TruncateRequest>(
      session, datafiles, handle, metafile.capability,
      [&](pvfs2::TruncateRequest& body, std::size_t i) {
        body.handle = datafiles[i];
        body.size = pvfs2::physical_offset(metafile.distribution, placement(i, datafiles.size()),
                                           static_cast<std::int64_t>(size))
                        .value_or(0);
      });
  if (!requests) co_return std::unexpected(std::move(requests.error()));
  co_return all_good(co_await session.call_all(std::move(*requests)));
}

net::Task<Result<void>> flush(Session& session, pvfs2::Handle handle,
                              std::vector<pvfs2::Handle> datafiles) {
  datafiles.push_back(handle);
  Result<std::vector<Session::Addressed>> requests = for_each_handle<pvfs2::FlushRequest>(
      session, datafiles, handle, {},
      [&](pvfs2::FlushRequest& body, std::size_t i) { body.handle = datafiles[i]; });
  if (!requests) co_return std::unexpected(std::move(requests.error()));
  co_return all_good(co_await session.call_all(std::move(*requests)));
}

}  // namespace vpfs::client
