#pragma once

namespace vpfs {

// Whether this program has a sanitizer with its own allocator. That keeps freed memory and adds to
// every allocation, so measured memory says nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kHasSanitizer =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kHasSanitizer = false;
#endif

}  // namespace vpfs
