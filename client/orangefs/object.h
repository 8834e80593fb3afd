#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "client/orangefs/caller_session.h"
#include "net/async.h"
#include "protocols/orangefs/basic_types.h"

// Steps that several operations on files and directories share.
namespace vpfs::client {

// Everything in a GETATTR but sizes, as the reference client asks for it.
inline constexpr std::uint32_t kEverything =
    orangefs::kAttrCommonAll | orangefs::kAttrMetaDistribution | orangefs::kAttrMetaDatafiles |
    orangefs::kAttrMetaMirrorDatafiles | orangefs::kAttrSymlinkTarget | orangefs::kAttrDirentCount |
    orangefs::kAttrDirHint | orangefs::kAttrDistDir | orangefs::kAttrCapability;

// Asks the server. Its answer to kEverything enters the cache.
[[nodiscard]] net::Task<Result<orangefs::Attributes>> get_attributes(
    const CallerSession& session, orangefs::Handle handle, std::uint32_t mask = kEverything);

// Asks the servers for the attributes of many objects, of several with each request. Without
// capabilities; past the cache. The results are in the order of the handles.
[[nodiscard]] net::Task<std::vector<Result<orangefs::Attributes>>> list_attributes(
    const CallerSession& session, std::vector<orangefs::Handle> handles, std::uint32_t mask);

struct HeldAttributes {
  Caches::AttributesPtr attributes;  // shared with the cache
  bool cached = false;               // perhaps stale, and perhaps refused
};
// From the cache if it has everything; otherwise, or without a cache, asks for `mask`.
[[nodiscard]] net::Task<Result<HeldAttributes>> held_attributes(const CallerSession& session,
                                                                orangefs::Handle handle,
                                                                std::uint32_t mask = kEverything);
// Whether a server's refusal may be due to a capability or a layout that is out of date.
[[nodiscard]] bool may_be_stale(const Error& error);

// From its metafile's attributes.
[[nodiscard]] bool is_stuffed(const orangefs::Attributes& metafile);
// EIO for more datafiles, or handles in its capability, than any file of a real server has.
// Requests go to each datafile, and have each handle.
[[nodiscard]] Result<void> check_extent(const orangefs::Attributes& metafile);
// The same for the dirdata of a directory, which are asked for its times.
[[nodiscard]] Result<void> check_dirdata(const orangefs::Attributes& directory);
// Bytes in a strip; 0 when one datafile holds everything; an error for distributions that we cannot
// read or write, and for strips so large that positions in the file overflow.
[[nodiscard]] Result<std::int64_t> strip_size_of(const orangefs::Attributes& metafile);
// Asks the datafiles, unless the file is stuffed.
[[nodiscard]] net::Task<Result<std::uint64_t>> file_size(const CallerSession& session,
                                                         orangefs::Handle handle,
                                                         orangefs::Attributes metafile);
// Makes room for more than the first strip; gives the new attributes, capability included.
[[nodiscard]] net::Task<Result<orangefs::Attributes>> unstuff(const CallerSession& session,
                                                              orangefs::Handle handle,
                                                              orangefs::Capability capability);
// Cuts or extends, with attributes that have a capability.
[[nodiscard]] net::Task<Result<void>> truncate(const CallerSession& session,
                                               orangefs::Handle handle,
                                               orangefs::Attributes metafile, std::uint64_t size);
// Puts on stable storage what was written.
[[nodiscard]] net::Task<Result<void>> flush(const CallerSession& session, orangefs::Handle handle,
                                            std::vector<orangefs::Handle> datafiles);

// The first error among the results of Session::call_all().
[[nodiscard]] Result<void> all_good(const std::vector<Result<orangefs::Response>>& results);

}  // namespace vpfs::client
