#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "client/session.h"
#include "net/async.h"
#include "protocols/pvfs2/basic_types.h"

// Steps that several operations on files and directories are made of.
namespace vpfs::client {

// All that a GETATTR can tell but sizes, as the reference client asks for it.
inline constexpr std::uint32_t kEverything =
    pvfs2::kAttrCommonAll | pvfs2::kAttrMetaDistribution | pvfs2::kAttrMetaDatafiles |
    pvfs2::kAttrMetaMirrorDatafiles | pvfs2::kAttrSymlinkTarget | pvfs2::kAttrDirentCount |
    pvfs2::kAttrDirHint | pvfs2::kAttrDistDir | pvfs2::kAttrCapability;

[[nodiscard]] net::Task<Result<pvfs2::Attributes>> get_attributes(Session& session,
                                                                  pvfs2::Handle handle,
                                                                  std::uint32_t mask = kEverything);

// From its metafile's attributes.
[[nodiscard]] bool is_stuffed(const pvfs2::Attributes& metafile);
// Bytes in a strip; 0 when one datafile holds everything; an error for distributions that we cannot
// read or write.
[[nodiscard]] Result<std::int64_t> strip_size_of(const pvfs2::Attributes& metafile);
// Asks the datafiles, unless the file is stuffed.
[[nodiscard]] net::Task<Result<std::uint64_t>> file_size(Session& session, pvfs2::Handle handle,
                                                         pvfs2::Attributes metafile);
// Makes room for more than the first strip; gives the new attributes, capability included.
[[nodiscard]] net::Task<Result<pvfs2::Attributes>> unstuff(Session& session, pvfs2::Handle handle,
                                                           pvfs2::Capability capability);
// Cuts or extends, with attributes that have a capability.
[[nodiscard]] net::Task<Result<void>> truncate(Session& session, pvfs2::Handle handle,
                                               pvfs2::Attributes metafile, std::uint64_t size);
// Puts on stable storage what was written.
[[nodiscard]] net::Task<Result<void>> flush(Session& session, pvfs2::Handle handle,
                                            std::vector<pvfs2::Handle> datafiles);

// The first error among the results of Session::call_all().
[[nodiscard]] Result<void> all_good(const std::vector<Result<pvfs2::Response>>& results);

}  // namespace vpfs::client
