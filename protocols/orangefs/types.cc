#include "protocols/orangefs/types.h"

#include <array>
#include <cstddef>

namespace vpfs::orangefs {
namespace {

constexpr std::array<std::string_view, 52> kOpNames = {
    "INVALID",
    "CREATE",
    "REMOVE",
    "IO",
    "GETATTR",
    "SETATTR",
    "LOOKUP_PATH",
    "CRDIRENT",
    "RMDIRENT",
    "CHDIRENT",
    "TRUNCATE",
    "MKDIR",
    "READDIR",
    "GETCONFIG",
    "WRITE_COMPLETION",
    "FLUSH",
    "MGMT_SETPARAM",
    "MGMT_NOOP",
    "STATFS",
    "PERF_UPDATE",
    "MGMT_PERF_MON",
    "MGMT_ITERATE_HANDLES",
    "MGMT_DSPACE_INFO_LIST",
    "MGMT_EVENT_MON",
    "MGMT_REMOVE_OBJECT",
    "MGMT_REMOVE_DIRENT",
    "MGMT_GET_DIRDATA_HANDLE",
    "JOB_TIMER",
    "PROTO_ERROR",
    "GETEATTR",
    "SETEATTR",
    "DELEATTR",
    "LISTEATTR",
    "SMALL_IO",
    "LISTATTR",
    "BATCH_CREATE",
    "BATCH_REMOVE",
    "PRECREATE_POOL_REFILLER",
    "UNSTUFF",
    "MIRROR",
    "IMM_COPIES",
    "TREE_REMOVE",
    "TREE_GET_FILE_SIZE",
    "MGMT_GET_UID",
    "TREE_SETATTR",
    "MGMT_GET_DIRENT",
    "MGMT_CREATE_ROOT_DIR",
    "MGMT_SPLIT_DIRENT",
    "ATOMICEATTR",
    "TREE_GETATTR",
    "MGMT_GET_USER_CERT",
    "MGMT_GET_USER_CERT_KEYREQ",
};

}  // namespace

std::string_view name(Op op) {
  const auto number = static_cast<std::size_t>(op);
  return number < kOpNames.size() ? kOpNames[number] : "UNKNOWN";
}

}  // namespace vpfs::orangefs
