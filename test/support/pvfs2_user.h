#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/support/pvfs2_wire_client.h"

namespace vpfs::test {

// A user's requests about a file system, with credential, capability and hint as the client library
// of OrangeFS sends them. Makes requests; who sends them is the test's business.
class Pvfs2User {
 public:
  static constexpr pvfs2::Handle kRoot = 1048576;

  explicit Pvfs2User(pvfs2::FsId fs_id, std::uint32_t uid = 0) : fs_id_(fs_id) {
    credential_.uid = uid;
    credential_.groups = {uid};
    credential_.issuer = "C:test";
    credential_.timeout = ~std::uint64_t{0} >> 1;
  }

  [[nodiscard]] const pvfs2::Credential& credential() const { return credential_; }
  [[nodiscard]] pvfs2::FsId fs_id() const { return fs_id_; }

  [[nodiscard]] pvfs2::Request request(pvfs2::RequestBody body,
                                       const pvfs2::Capability& capability = {},
                                       pvfs2::Handle hint = 0) const {
    pvfs2::Request made{.capability = capability, .hints = {}, .body = std::move(body)};
    if (hint != 0) {
      pvfs2::Hint handle;
      handle.type = pvfs2::HintType::handle;
      handle.raw_type = static_cast<std::uint32_t>(pvfs2::HintType::handle);
      handle.number = hint;
      made.hints.push_back(handle);
    }
    return made;
  }
  // Asks for everything that a GETATTR can show.
  [[nodiscard]] pvfs2::Request getattr(pvfs2::Handle handle) const {
    return request(pvfs2::GetattrRequest{.handle = handle,
                                         .fs_id = fs_id_,
                                         .attribute_mask = 0x7c2c7f | pvfs2::kAttrDirentCount,
                                         .credential = credential_});
  }
  [[nodiscard]] pvfs2::Request lookup(pvfs2::Handle from, const std::string& path) const {
    return request(pvfs2::LookupPathRequest{.path = path,
                                            .fs_id = fs_id_,
                                            .starting_handle = from,
                                            .attribute_mask = pvfs2::kAttrCommonAll,
                                            .credential = credential_});
  }
  [[nodiscard]] pvfs2::Request create(const pvfs2::Attributes& parent, int datafiles) const {
    pvfs2::CreateRequest body;
    body.fs_id = fs_id_;
    body.credential = credential_;
    body.attributes.uid = credential_.uid;
    body.attributes.permissions = 0644;
    body.attributes.type = pvfs2::ObjectType::metafile;
    body.attributes.mask = pvfs2::kAttrCommonAll | pvfs2::kAttrMetaDistribution;
    body.num_datafiles = datafiles;
    body.layout.algorithm = 2;
    return request(std::move(body), parent.capability);
  }
  [[nodiscard]] pvfs2::Request link(const pvfs2::Attributes& parent, pvfs2::Handle parent_handle,
                                    const std::string& name, pvfs2::Handle handle) const {
    return request(
        pvfs2::CrdirentRequest{.credential = credential_,
                               .name = name,
                               .new_handle = handle,
                               .parent_handle = parent_handle,
                               .dirdata_handle = parent.distributed.dirdata_handles.front(),
                               .fs_id = fs_id_},
        parent.capability);
  }
  // A plain byte range of datafile `server_nr` of a file.
  [[nodiscard]] pvfs2::Request io(const pvfs2::Attributes& file, pvfs2::Handle handle,
                                  std::uint32_t server_nr, pvfs2::IoType type, std::int64_t offset,
                                  std::int64_t size) const {
    pvfs2::IoRequestBody body;
    body.handle = file.datafiles[server_nr];
    body.fs_id = fs_id_;
    body.io_type = type;
    body.server_nr = server_nr;
    body.server_ct = static_cast<std::uint32_t>(file.datafiles.size());
    body.distribution = file.distribution;
    body.file_request = pvfs2::FileRequest::contiguous_bytes();
    body.file_request_offset = offset;
    body.aggregate_size = size;
    return request(std::move(body), file.capability, handle);
  }
  [[nodiscard]] pvfs2::Request small_read(const pvfs2::Attributes& file, pvfs2::Handle handle,
                                          std::uint32_t server_nr, std::int64_t offset,
                                          std::int64_t size) const {
    return small_io(file, handle, server_nr, pvfs2::IoType::read, offset, size, {});
  }
  [[nodiscard]] pvfs2::Request small_write(const pvfs2::Attributes& file, pvfs2::Handle handle,
                                           std::uint32_t server_nr, std::int64_t offset,
                                           std::string_view data) const {
    const auto bytes = std::as_bytes(std::span(data));
    return small_io(file, handle, server_nr, pvfs2::IoType::write, offset,
                    static_cast<std::int64_t>(data.size()), {bytes.begin(), bytes.end()});
  }

 private:
  [[nodiscard]] pvfs2::Request small_io(const pvfs2::Attributes& file, pvfs2::Handle handle,
                                        std::uint32_t server_nr, pvfs2::IoType type,
                                        std::int64_t offset, std::int64_t size,
                                        std::vector<std::byte> data) const {
    pvfs2::SmallIoRequest body;
    body.handle = file.datafiles[server_nr];
    body.fs_id = fs_id_;
    body.io_type = type;
    body.server_nr = server_nr;
    body.server_ct = static_cast<std::uint32_t>(file.datafiles.size());
    body.distribution = file.distribution;
    body.file_request = pvfs2::FileRequest::contiguous_bytes();
    body.file_request_offset = offset;
    body.aggregate_size = size;
    body.total_bytes = static_cast<std::int64_t>(data.size());
    body.data = std::move(data);
    return request(std::move(body), file.capability, handle);
  }

  pvfs2::FsId fs_id_;
  pvfs2::Credential credential_;
};

}  // namespace vpfs::test
