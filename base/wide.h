#pragma once

namespace vpfs {

// Integers of 128 bits, for products of two of 64.
__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

}  // namespace vpfs
