#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/support/servers/orangefs_wire_client.h"

namespace vpfs::test {

// Builds a user's requests with credential, capability and hint, as OrangeFS's client library does.
// The test sends them.
class OrangefsUser {
 public:
  static constexpr orangefs::Handle kRoot = 1048576;

  explicit OrangefsUser(orangefs::FsId fs_id, std::uint32_t uid = 0) : fs_id_(fs_id) {
    credential_.uid = uid;
    credential_.groups = {uid};
    credential_.issuer = "C:test";
    credential_.timeout = ~std::uint64_t{0} >> 1;
  }

  [[nodiscard]] const orangefs::Credential& credential() const { return credential_; }
  [[nodiscard]] orangefs::FsId fs_id() const { return fs_id_; }

  [[nodiscard]] orangefs::Request request(orangefs::RequestBody body,
                                          const orangefs::Capability& capability = {},
                                          orangefs::Handle hint = 0) const {
    orangefs::Request made{.capability = capability, .hints = {}, .body = std::move(body)};
    if (hint != 0) {
      orangefs::Hint handle;
      handle.type = orangefs::HintType::handle;
      handle.raw_type = static_cast<std::uint32_t>(orangefs::HintType::handle);
      handle.number = hint;
      made.hints.push_back(handle);
    }
    return made;
  }
  // Asks for all attributes that a GETATTR can return.
  [[nodiscard]] orangefs::Request getattr(orangefs::Handle handle) const {
    return request(orangefs::GetattrRequest{.handle = handle,
                                            .fs_id = fs_id_,
                                            .attribute_mask = 0x7c2c7f | orangefs::kAttrDirentCount,
                                            .credential = credential_});
  }
  [[nodiscard]] orangefs::Request lookup(orangefs::Handle from, const std::string& path) const {
    return request(orangefs::LookupPathRequest{.path = path,
                                               .fs_id = fs_id_,
                                               .starting_handle = from,
                                               .attribute_mask = orangefs::kAttrCommonAll,
                                               .credential = credential_});
  }
  [[nodiscard]] orangefs::Request create(const orangefs::Attributes& parent, int datafiles) const {
    orangefs::CreateRequest body;
    body.fs_id = fs_id_;
    body.credential = credential_;
    body.attributes.uid = credential_.uid;
    body.attributes.permissions = 0644;
    body.attributes.type = orangefs::ObjectType::metafile;
    body.attributes.mask = orangefs::kAttrCommonAll | orangefs::kAttrMetaDistribution;
    body.num_datafiles = datafiles;
    body.layout.algorithm = 2;
    return request(std::move(body), parent.capability);
  }
  [[nodiscard]] orangefs::Request link(const orangefs::Attributes& parent,
                                       orangefs::Handle parent_handle, const std::string& name,
                                       orangefs::Handle handle) const {
    return request(
        orangefs::CrdirentRequest{.credential = credential_,
                                  .name = name,
                                  .new_handle = handle,
                                  .parent_handle = parent_handle,
                                  .dirdata_handle = parent.distributed.dirdata_handles.front(),
                                  .fs_id = fs_id_},
        parent.capability);
  }
  // A contiguous byte range of datafile `server_nr` of a file.
  [[nodiscard]] orangefs::Request io(const orangefs::Attributes& file, orangefs::Handle handle,
                                     std::uint32_t server_nr, orangefs::IoType type,
                                     std::int64_t offset, std::int64_t size) const {
    orangefs::IoRequestBody body;
    body.handle = file.datafiles[server_nr];
    body.fs_id = fs_id_;
    body.io_type = type;
    body.server_nr = server_nr;
    body.server_ct = static_cast<std::uint32_t>(file.datafiles.size());
    body.distribution = file.distribution;
    body.file_request = orangefs::FileRequest::contiguous_bytes();
    body.file_request_offset = offset;
    body.aggregate_size = size;
    return request(std::move(body), file.capability, handle);
  }
  [[nodiscard]] orangefs::Request small_read(const orangefs::Attributes& file,
                                             orangefs::Handle handle, std::uint32_t server_nr,
                                             std::int64_t offset, std::int64_t size) const {
    return small_io(file, handle, server_nr, orangefs::IoType::read, offset, size, {});
  }
  [[nodiscard]] orangefs::Request small_write(const orangefs::Attributes& file,
                                              orangefs::Handle handle, std::uint32_t server_nr,
                                              std::int64_t offset, std::string_view data) const {
    const auto bytes = std::as_bytes(std::span(data));
    return small_io(file, handle, server_nr, orangefs::IoType::write, offset,
                    static_cast<std::int64_t>(data.size()), {bytes.begin(), bytes.end()});
  }

 private:
  [[nodiscard]] orangefs::Request small_io(const orangefs::Attributes& file,
                                           orangefs::Handle handle, std::uint32_t server_nr,
                                           orangefs::IoType type, std::int64_t offset,
                                           std::int64_t size, std::vector<std::byte> data) const {
    orangefs::SmallIoRequest body;
    body.handle = file.datafiles[server_nr];
    body.fs_id = fs_id_;
    body.io_type = type;
    body.server_nr = server_nr;
    body.server_ct = static_cast<std::uint32_t>(file.datafiles.size());
    body.distribution = file.distribution;
    body.file_request = orangefs::FileRequest::contiguous_bytes();
    body.file_request_offset = offset;
    body.aggregate_size = size;
    body.total_bytes = static_cast<std::int64_t>(data.size());
    body.data = std::move(data);
    return request(std::move(body), file.capability, handle);
  }

  orangefs::FsId fs_id_;
  orangefs::Credential credential_;
};

}  // namespace vpfs::test
