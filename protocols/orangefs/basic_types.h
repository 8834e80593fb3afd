#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "protocols/orangefs/types.h"

// The structures that requests and responses are made of. All own their contents; equality is by
// value. Undefined pad bytes of the wire are dropped on decoding and written as zeros.
namespace vpfs::orangefs {

// What its bearer may do with which handles. The default value is the null capability.
struct Capability {
  std::string issuer;  // "S:<alias>" of the issuing server
  FsId fs_id = 0;
  std::vector<std::byte> signature;
  std::uint64_t timeout = 0;  // seconds since the epoch
  std::uint32_t op_mask = 0;  // kCap...
  std::vector<Handle> handles;

  bool operator==(const Capability&) const = default;
};

// The user who asks.
struct Credential {
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> groups;
  std::string issuer;         // "C:<client host name>"
  std::uint64_t timeout = 0;  // seconds since the epoch
  std::vector<std::byte> signature;
  std::vector<std::byte> certificate;

  bool operator==(const Credential&) const = default;
};

enum class HintType : std::uint32_t {
  named = 0,
  request_id = 1,
  client_id = 2,
  handle = 3,
  op_id = 4,
  rank = 5,
  server_id = 6,
  distribution = 7,
  layout = 8,
  datafile_count = 9,
  server_list = 10,
  cache = 11,
  local_uid = 12,
  owner_gid = 13,
  distribution_pv = 14,
};
// One hint. Numbers (32 bits, `handle` 64) are in `number`; a named hint (any type that is not one
// of the others above, kept as `raw_type`) has `key` and `text`.
struct Hint {
  HintType type = HintType::named;
  std::uint32_t raw_type = 0;  // the type on the wire of a named hint, commonly 0
  std::uint64_t number = 0;
  std::string key;
  std::string text;

  bool operator==(const Hint&) const = default;
};
using Hints = std::vector<Hint>;

struct SimpleStripe {
  std::int64_t strip_size = 65536;
  bool operator==(const SimpleStripe&) const = default;
};
struct BasicDistribution {
  bool operator==(const BasicDistribution&) const = default;
};
struct TwoDStripe {
  std::uint32_t groups = 2;
  std::int64_t strip_size = 65536;
  std::uint32_t factor = 256;
  bool operator==(const TwoDStripe&) const = default;
};
struct VarStrip {
  std::string strips;
  bool operator==(const VarStrip&) const = default;
};
// How a file's bytes are laid over its datafiles. On the wire: its name, then its parameters.
using Distribution = std::variant<SimpleStripe, BasicDistribution, TwoDStripe, VarStrip>;

// One element of a PVFS_Request, the datatype that says which bytes of a file an I/O touches.
// `ereq` and `sreq` are indexes into the request's elements; -1 is none.
struct FileRequestElement {
  std::int64_t offset = 0;
  std::int32_t num_ereqs = 1;
  std::int32_t num_blocks = 1;
  std::int64_t stride = 0;
  std::int64_t ub = 0;
  std::int64_t lb = 0;
  std::int64_t aggregate_size = 0;
  std::int32_t num_contig_chunks = 1;
  std::int32_t depth = 0;
  std::int32_t num_nested_req = 0;
  std::int32_t committed = 0;
  std::int32_t refcount = 0;
  std::int32_t ereq = -1;
  std::int32_t sreq = -1;

  bool operator==(const FileRequestElement&) const = default;
};
// Whether the request whose element 0 this is covers one run of bytes, from its start, without
// holes.
[[nodiscard]] bool is_dense(const FileRequestElement& whole);
// PVFS_Request: element 0 is the whole; never empty when it came off the wire.
struct FileRequest {
  std::vector<FileRequestElement> elements;

  // As is_dense(); then the logical range of an IO is
  // [file_request_offset, file_request_offset + aggregate_size).
  [[nodiscard]] bool dense() const;
  // As the client library sends a plain byte range: PVFS_BYTE, with nothing nested.
  [[nodiscard]] static FileRequest contiguous_bytes();

  bool operator==(const FileRequest&) const = default;
};

struct HandleExtent {
  Handle first = 0;
  Handle last = 0;  // inclusive
  bool operator==(const HandleExtent&) const = default;
};

// Where to place a new file's datafiles.
struct Layout {
  std::int32_t algorithm = 0;
  std::vector<std::string> servers;
  bool operator==(const Layout&) const = default;
};

// A directory spread over several dirdata objects.
struct DistributedDirectory {
  std::int32_t tree_height = 0;  // ceil(log2(number of dirdata objects))
  std::int32_t split_size = 0;   // entries in one dirdata object before it splits
  std::int32_t server_number = 0;
  std::int32_t branch_level = 0;
  std::vector<std::uint32_t> bitmap;
  std::vector<Handle> dirdata_handles;
  bool operator==(const DistributedDirectory&) const = default;
};

// A directory's defaults for new files, and its entry count. Where a text has a separate length on
// the wire, OrangeFS sends the text's size + 1, or 0 for no text.
struct DirectoryHint {
  std::int64_t dirent_count = 0;
  std::uint32_t distribution_name_length = 0;
  std::string distribution_name;
  std::uint32_t distribution_parameters_length = 0;
  std::string distribution_parameters;
  std::uint32_t datafile_count = 0;
  std::uint32_t layout = 0;
  std::int32_t server_count = 0;
  std::int32_t servers_length = 0;
  std::string servers;  // the addresses, in one text
  bool operator==(const DirectoryHint&) const = default;
};

// An object's attributes. `mask` (kAttr...) and `type` decide which parts are on the wire;
// a field whose mask bit is clear is default and not encoded.
struct Attributes {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t permissions = 0;
  std::uint64_t atime = 0;  // as the wire has them; seconds since the epoch or versioned
  std::uint64_t mtime = 0;
  std::uint64_t ctime = 0;
  std::uint32_t mask = 0;
  ObjectType type = ObjectType::none;

  Capability capability;            // kAttrCapability
  std::int32_t stuffed_size = 0;    // metafile without kAttrMetaUnstuffed
  Distribution distribution;        // kAttrMetaDistribution
  std::vector<Handle> datafiles;    // kAttrMetaDatafiles
  std::uint64_t flags = 0;          // kAttrMetaDatafiles
  std::uint32_t mirror_copies = 0;  // kAttrMetaMirrorDatafiles
  std::vector<Handle> mirror_datafiles;
  std::int64_t size = 0;                    // kAttrDataSize
  std::uint32_t symlink_target_length = 0;  // kAttrSymlinkTarget; as OrangeFS: target size + 1
  std::string symlink_target;
  DistributedDirectory distributed;  // kAttrDistDir
  DirectoryHint directory;           // kAttrDirentCount or kAttrDirHint

  bool operator==(const Attributes&) const = default;
};

}  // namespace vpfs::orangefs
