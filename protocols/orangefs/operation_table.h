#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <variant>

#include "protocols/orangefs/message.h"

// Which operations each body belongs to. A body of several operations has a member `op`.
namespace vpfs::orangefs {

template <typename Body>
inline constexpr std::false_type kOpsOf;  // every body has its specialization below
template <>
inline constexpr std::array kOpsOf<CreateRequest> = {Op::create};
template <>
inline constexpr std::array kOpsOf<RemoveRequest> = {Op::remove};
template <>
inline constexpr std::array kOpsOf<IoRequestBody> = {Op::io};
template <>
inline constexpr std::array kOpsOf<GetattrRequest> = {Op::getattr};
template <>
inline constexpr std::array kOpsOf<SetattrRequest> = {Op::setattr};
template <>
inline constexpr std::array kOpsOf<LookupPathRequest> = {Op::lookup_path};
template <>
inline constexpr std::array kOpsOf<CrdirentRequest> = {Op::crdirent};
template <>
inline constexpr std::array kOpsOf<RmdirentRequest> = {Op::rmdirent};
template <>
inline constexpr std::array kOpsOf<ChdirentRequest> = {Op::chdirent};
template <>
inline constexpr std::array kOpsOf<TruncateRequest> = {Op::truncate};
template <>
inline constexpr std::array kOpsOf<MkdirRequest> = {Op::mkdir};
template <>
inline constexpr std::array kOpsOf<ReaddirRequest> = {Op::readdir};
template <>
inline constexpr std::array kOpsOf<FlushRequest> = {Op::flush};
template <>
inline constexpr std::array kOpsOf<MgmtSetparamRequest> = {Op::mgmt_setparam};
template <>
inline constexpr std::array kOpsOf<StatfsRequest> = {Op::statfs};
template <>
inline constexpr std::array kOpsOf<MgmtPerfMonRequest> = {Op::mgmt_perf_mon};
template <>
inline constexpr std::array kOpsOf<MgmtIterateHandlesRequest> = {Op::mgmt_iterate_handles};
template <>
inline constexpr std::array kOpsOf<MgmtDspaceInfoListRequest> = {Op::mgmt_dspace_info_list};
template <>
inline constexpr std::array kOpsOf<MgmtEventMonRequest> = {Op::mgmt_event_mon};
template <>
inline constexpr std::array kOpsOf<MgmtRemoveDirentRequest> = {Op::mgmt_remove_dirent};
template <>
inline constexpr std::array kOpsOf<GeteattrRequest> = {Op::geteattr};
template <>
inline constexpr std::array kOpsOf<SeteattrRequest> = {Op::seteattr};
template <>
inline constexpr std::array kOpsOf<DeleattrRequest> = {Op::deleattr};
template <>
inline constexpr std::array kOpsOf<ListeattrRequest> = {Op::listeattr};
template <>
inline constexpr std::array kOpsOf<SmallIoRequest> = {Op::small_io};
template <>
inline constexpr std::array kOpsOf<ListattrRequest> = {Op::listattr};
template <>
inline constexpr std::array kOpsOf<BatchCreateRequest> = {Op::batch_create};
template <>
inline constexpr std::array kOpsOf<BatchRemoveRequest> = {Op::batch_remove};
template <>
inline constexpr std::array kOpsOf<UnstuffRequest> = {Op::unstuff};
template <>
inline constexpr std::array kOpsOf<MirrorRequest> = {Op::mirror};
template <>
inline constexpr std::array kOpsOf<TreeRemoveRequest> = {Op::tree_remove};
template <>
inline constexpr std::array kOpsOf<TreeGetFileSizeRequest> = {Op::tree_get_file_size};
template <>
inline constexpr std::array kOpsOf<MgmtGetUidRequest> = {Op::mgmt_get_uid};
template <>
inline constexpr std::array kOpsOf<TreeSetattrRequest> = {Op::tree_setattr};
template <>
inline constexpr std::array kOpsOf<MgmtGetDirentRequest> = {Op::mgmt_get_dirent};
template <>
inline constexpr std::array kOpsOf<MgmtSplitDirentRequest> = {Op::mgmt_split_dirent};
template <>
inline constexpr std::array kOpsOf<AtomiceattrRequest> = {Op::atomiceattr};
template <>
inline constexpr std::array kOpsOf<TreeGetattrRequest> = {Op::tree_getattr};
template <>
inline constexpr std::array kOpsOf<MgmtGetUserCertRequest> = {Op::mgmt_get_user_cert};
template <>
inline constexpr std::array kOpsOf<MgmtGetUserCertKeyreqRequest> = {Op::mgmt_get_user_cert_keyreq};
template <>
inline constexpr std::array kOpsOf<EmptyRequest> = {Op::getconfig, Op::mgmt_noop, Op::proto_error,
                                                    Op::imm_copies};
template <>
inline constexpr std::array kOpsOf<ObjectRequest> = {
    Op::mgmt_remove_object, Op::mgmt_get_dirdata_handle, Op::mgmt_create_root_dir};

template <>
inline constexpr std::array kOpsOf<CreateResponse> = {Op::create};
template <>
inline constexpr std::array kOpsOf<IoResponse> = {Op::io};
template <>
inline constexpr std::array kOpsOf<LookupPathResponse> = {Op::lookup_path};
template <>
inline constexpr std::array kOpsOf<MkdirResponse> = {Op::mkdir};
template <>
inline constexpr std::array kOpsOf<ReaddirResponse> = {Op::readdir};
template <>
inline constexpr std::array kOpsOf<GetconfigResponse> = {Op::getconfig};
template <>
inline constexpr std::array kOpsOf<WriteCompletionResponse> = {Op::write_completion};
template <>
inline constexpr std::array kOpsOf<StatfsResponse> = {Op::statfs};
template <>
inline constexpr std::array kOpsOf<MgmtPerfMonResponse> = {Op::mgmt_perf_mon};
template <>
inline constexpr std::array kOpsOf<MgmtIterateHandlesResponse> = {Op::mgmt_iterate_handles};
template <>
inline constexpr std::array kOpsOf<MgmtDspaceInfoListResponse> = {Op::mgmt_dspace_info_list};
template <>
inline constexpr std::array kOpsOf<MgmtEventMonResponse> = {Op::mgmt_event_mon};
template <>
inline constexpr std::array kOpsOf<ListeattrResponse> = {Op::listeattr};
template <>
inline constexpr std::array kOpsOf<SmallIoResponse> = {Op::small_io};
template <>
inline constexpr std::array kOpsOf<ListattrResponse> = {Op::listattr};
template <>
inline constexpr std::array kOpsOf<BatchCreateResponse> = {Op::batch_create};
template <>
inline constexpr std::array kOpsOf<MirrorResponse> = {Op::mirror};
template <>
inline constexpr std::array kOpsOf<TreeGetFileSizeResponse> = {Op::tree_get_file_size};
template <>
inline constexpr std::array kOpsOf<TreeGetattrResponse> = {Op::tree_getattr};
template <>
inline constexpr std::array kOpsOf<MgmtGetUidResponse> = {Op::mgmt_get_uid};
template <>
inline constexpr std::array kOpsOf<MgmtGetDirentResponse> = {Op::mgmt_get_dirent};
template <>
inline constexpr std::array kOpsOf<AttributesResponse> = {Op::getattr, Op::unstuff};
template <>
inline constexpr std::array kOpsOf<HandleResponse> = {Op::rmdirent, Op::chdirent,
                                                      Op::mgmt_get_dirdata_handle};
template <>
inline constexpr std::array kOpsOf<EattrResponse> = {Op::geteattr, Op::atomiceattr};
template <>
inline constexpr std::array kOpsOf<TreeStatusResponse> = {Op::tree_remove, Op::tree_setattr};
template <>
inline constexpr std::array kOpsOf<UserCertResponse> = {Op::mgmt_get_user_cert,
                                                        Op::mgmt_get_user_cert_keyreq};
template <>
inline constexpr std::array kOpsOf<EmptyResponse> = {Op::remove,
                                                     Op::setattr,
                                                     Op::crdirent,
                                                     Op::truncate,
                                                     Op::flush,
                                                     Op::mgmt_setparam,
                                                     Op::mgmt_noop,
                                                     Op::mgmt_remove_object,
                                                     Op::mgmt_remove_dirent,
                                                     Op::proto_error,
                                                     Op::seteattr,
                                                     Op::deleattr,
                                                     Op::batch_remove,
                                                     Op::imm_copies,
                                                     Op::mgmt_create_root_dir,
                                                     Op::mgmt_split_dirent};

template <typename Body>
[[nodiscard]] constexpr bool belongs_to(Op op) {
  return std::find(kOpsOf<Body>.begin(), kOpsOf<Body>.end(), op) != kOpsOf<Body>.end();
}

// Whether a response to `op` passes the wire, with any status.
template <std::size_t kIndex = 0>
[[nodiscard]] constexpr bool has_response(Op op) {
  if constexpr (kIndex == std::variant_size_v<ResponseBody>) {
    return false;
  } else {
    return belongs_to<std::variant_alternative_t<kIndex, ResponseBody>>(op) ||
           has_response<kIndex + 1>(op);
  }
}

}  // namespace vpfs::orangefs
