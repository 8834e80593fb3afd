#pragma once

namespace vpfs {

// Whether this program was built with a sanitizer that has an allocator of its own: it keeps what
// was freed, and more beside what was not, so memory tells nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kHasSanitizer =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kHasSanitizer = false;
#endif

}  // namespace vpfs
