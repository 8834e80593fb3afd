// A preloaded double of a file system below that answers questions about ACLs as NFS and Lustre do.
// VPFS_ACL_DOUBLE says which one. Everything else goes to the system. It says on standard error
// when it is asked for the first time.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace {

enum class Kind {
  nfs,           // version 4 has ACLs of its own: EOPNOTSUPP for those of POSIX
  lustre,        // no object has one: ENODATA
  lustre_noacl,  // as the server is mounted with "noacl": EOPNOTSUPP
  mixed,  // ENODATA for the first question, which is about the root, and EOPNOTSUPP behind it
};

Kind kind() {
  const char* const name = std::getenv("VPFS_ACL_DOUBLE");
  const std::string_view wanted = name != nullptr ? name : "";
  if (wanted == "lustre") return Kind::lustre;
  if (wanted == "lustre_noacl") return Kind::lustre_noacl;
  return wanted == "mixed" ? Kind::mixed : Kind::nfs;
}

bool is_acl(const char* name) {
  return std::string_view(name).starts_with("system.posix_acl_");
}

// -1 with the errno of the kind.
int no_acl() {
  static std::atomic<unsigned> asked = 0;
  const bool is_first = asked++ == 0;
  if (is_first) {
    constexpr std::string_view kSaid = "the double was asked for an ACL\n";
    (void)!::write(STDERR_FILENO, kSaid.data(), kSaid.size());
  }
  const bool has_none = kind() == Kind::lustre || (kind() == Kind::mixed && is_first);
  errno = has_none ? ENODATA : EOPNOTSUPP;
  return -1;
}

template <typename Function>
Function* real(Function* /*type*/, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));  // NOLINT
}

// The list without names of ACLs; NFS has a name of its own beside.
ssize_t listed(ssize_t size, const char* from, char* list, size_t room) {
  if (size < 0) return size;
  std::string names;
  for (std::string_view left(from, static_cast<std::size_t>(size)); !left.empty();) {
    const std::string_view name = left.substr(0, left.find('\0'));
    if (!name.starts_with("system.posix_acl_")) names.append(name).push_back('\0');
    left.remove_prefix(name.size() + 1);
  }
  if (kind() == Kind::nfs) names.append("system.nfs4_acl").push_back('\0');
  if (room == 0) return static_cast<ssize_t>(names.size());
  if (names.size() > room) {
    errno = ERANGE;
    return -1;
  }
  std::memcpy(list, names.data(), names.size());
  return static_cast<ssize_t>(names.size());
}

constexpr std::size_t kLargestList = 65536;

}  // namespace

extern "C" {

ssize_t getxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return is_acl(name) ? no_acl() : real(&getxattr, "getxattr")(path, name, value, size);
}
ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return is_acl(name) ? no_acl() : real(&lgetxattr, "lgetxattr")(path, name, value, size);
}
ssize_t fgetxattr(int file, const char* name, void* value, size_t size) noexcept {
  return is_acl(name) ? no_acl() : real(&fgetxattr, "fgetxattr")(file, name, value, size);
}
int setxattr(const char* path, const char* name, const void* value, size_t size,
             int flags) noexcept {
  if (is_acl(name)) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return real(&setxattr, "setxattr")(path, name, value, size, flags);
}
ssize_t listxattr(const char* path, char* list, size_t size) noexcept {
  std::array<char, kLargestList> all;
  const ssize_t got = real(&listxattr, "listxattr")(path, all.data(), all.size());
  return listed(got, all.data(), list, size);
}
ssize_t flistxattr(int file, char* list, size_t size) noexcept {
  std::array<char, kLargestList> all;
  const ssize_t got = real(&flistxattr, "flistxattr")(file, all.data(), all.size());
  return listed(got, all.data(), list, size);
}

}  // extern "C"
