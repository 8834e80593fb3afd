#include "net/tls/openssl.h"

#include <string>

#include <dlfcn.h>
#include <openssl/opensslv.h>

#include "base/check.h"

namespace vpfs::net {
namespace {

#define VPFS_TEXT_OF(number) #number
#define VPFS_LIBRARY(version) "libssl.so." VPFS_TEXT_OF(version)
constexpr const char* kLibrary = VPFS_LIBRARY(OPENSSL_SHLIB_VERSION);

struct Loaded {
  OpenSsl functions;
  Result<void> outcome;
};

Result<void> find_all(OpenSsl& functions) {
  // It stays for the life of the process. Functions of libcrypto are found through it.
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(std::string("TLS needs OpenSSL: ") + ::dlerror());
#define VPFS_OPENSSL_FIND(name)                                                  \
  functions.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name)); \
  if (functions.name == nullptr) return fail(std::string("TLS needs OpenSSL: ") + ::dlerror());
  VPFS_OPENSSL_FUNCTIONS(VPFS_OPENSSL_FIND)
#undef VPFS_OPENSSL_FIND
  return {};
}

const Loaded& loaded() {
  static const Loaded once = [] {
    Loaded made;
    made.outcome = find_all(made.functions);
    return made;
  }();
  return once;
}

}  // namespace

Result<void> load_openssl() {
  return loaded().outcome;
}

const OpenSsl& openssl() {
  VPFS_ASSERT(loaded().outcome.has_value());
  return loaded().functions;
}

}  // namespace vpfs::net
