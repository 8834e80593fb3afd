#pragma once

#include <string>
#include <string_view>
#include <type_traits>

// How structures become bytes and back, in every protocol. Every structure has one function
//
//   template <typename A>
//   void fields(A& archive, StructOf<A, RemoveRequest>& x) {
//     VPFS_FIELDS(archive, x.handle, x.fs_id, x.credential);
//   }
//
// that names its fields in wire order; it may be a static member. An archive does one thing with
// them: a decoder fills x in, an encoder writes x, a printer shows x, so all agree by construction.
// A field that is not on the wire in the protocol's usual way is given in a wrapper that says how
// it does: list(x.groups), aligned(x.entry). The archives and the wrappers are a protocol's own.

// Hands the items to the archive together with their names. A macro because only the preprocessor
// knows the names.
#define VPFS_FIELDS(archive, ...) (archive).named(#__VA_ARGS__, __VA_ARGS__)

namespace vpfs {

template <typename A, typename T>
using StructOf = std::conditional_t<A::kDecodes, T, const T>;

// For printers: takes the first item's name off the front of `names`, and "x." off that.
[[nodiscard]] std::string_view take_field_name(std::string_view& names);
// The text in the outermost parentheses of a wrapper such as list(...).
[[nodiscard]] std::string_view inside_wrapper(std::string_view name);
// In double quotes, with \x.. for bytes that are not plain characters.
void append_quoted(std::string& text, std::string_view value);

}  // namespace vpfs
