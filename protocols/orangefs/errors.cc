#include "protocols/orangefs/errors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace vpfs::orangefs {
namespace {

constexpr std::uint32_t kErrorBit = 1U << 30;
// Set in codes of the second table; they have no errno.
constexpr std::uint32_t kOwnErrorBit = 1U << 29;
constexpr std::uint32_t kNumberMask = 0x7f;

// The errno of error number i is at i - 1. Two pairs are the same on Linux (EAGAIN and EWOULDBLOCK,
// EDEADLK and EDEADLOCK); vpfs sends the first of each pair.
constexpr std::array<int, 60> kErrnos = {
    EPERM,      ENOENT,       EINTR,           EIO,         ENXIO,        EBADF,
    EAGAIN,     ENOMEM,       EFAULT,          EBUSY,       EEXIST,       ENODEV,
    ENOTDIR,    EISDIR,       EINVAL,          EMFILE,      EFBIG,        ENOSPC,
    EROFS,      EMLINK,       EPIPE,           EDEADLK,     ENAMETOOLONG, ENOLCK,
    ENOSYS,     ENOTEMPTY,    ELOOP,           EWOULDBLOCK, ENOMSG,       EUNATCH,
    EBADR,      EDEADLOCK,    ENODATA,         ETIME,       ENONET,       EREMOTE,
    ECOMM,      EPROTO,       EBADMSG,         EOVERFLOW,   ERESTART,     EMSGSIZE,
    EPROTOTYPE, ENOPROTOOPT,  EPROTONOSUPPORT, EOPNOTSUPP,  EADDRINUSE,   EADDRNOTAVAIL,
    ENETDOWN,   ENETUNREACH,  ENETRESET,       ENOBUFS,     ETIMEDOUT,    ECONNREFUSED,
    EHOSTDOWN,  EHOSTUNREACH, EALREADY,        EACCES,      ECONNRESET,   ERANGE};

// The protocol's own errors; error number i is at i - 1.
constexpr std::array<std::string_view, 9> kOwnErrors = {
    "Operation cancelled",
    "Device initialization failed",
    "Detailed per-server errors",
    "Unknown host",
    "No address of that name",
    "No receiver for the message",
    "Try again (not an errno)",
    "Not a PVFS object",
    "Security error",
};

// The bits of a status, or 0 when it is not a PVFS error.
std::uint32_t bits_of(Status status) {
  const std::uint32_t bits = 0U - static_cast<std::uint32_t>(status);
  return status < 0 && (bits & kErrorBit) != 0 ? bits : 0;
}

}  // namespace

Status status_from_errno(int error) {
  if (error == 0) return 0;
  const auto* found = std::find(kErrnos.begin(), kErrnos.end(), error);
  if (found == kErrnos.end()) return status_from_errno(EIO);
  const auto number = static_cast<std::uint32_t>(found - kErrnos.begin() + 1);
  return -static_cast<Status>(kErrorBit | number);
}

int errno_from_status(Status status) {
  const std::uint32_t bits = bits_of(status);
  const std::size_t number = bits & kNumberMask;
  if ((bits & kOwnErrorBit) != 0 || number == 0 || number > kErrnos.size()) return 0;
  return kErrnos[number - 1];
}

std::string describe_status(Status status) {
  if (status == 0) return "Success (0)";
  const std::uint32_t bits = bits_of(status);
  const std::size_t number = bits & kNumberMask;
  std::string text = "Unknown error";
  if (const int error = errno_from_status(status); error != 0) {
    text = std::generic_category().message(error);
  } else if ((bits & kOwnErrorBit) != 0 && number >= 1 && number <= kOwnErrors.size()) {
    text = kOwnErrors[number - 1];
  }
  return text + " (" + std::to_string(status) + ")";
}

}  // namespace vpfs::orangefs
