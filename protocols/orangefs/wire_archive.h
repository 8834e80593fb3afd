#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/check.h"
#include "protocols/fields.h"
#include "protocols/orangefs/message.h"

// The archives for the structures of protocol 7.0 (protocols/fields.h), WirePrinter aside, and the
// wrappers for fields that are not plain. Internal to protocols/orangefs.
namespace vpfs::orangefs {

// Four undefined bytes.
struct Pad4 {};
inline constexpr Pad4 kPad4;
// Undefined bytes up to the next multiple of 8, counted from the start of the payload.
struct Align8 {};
inline constexpr Align8 kAlign8;

// A byte run without terminator (extended attributes), or a vector of such.
template <typename T>
struct Keyval {
  T& items;
};
template <typename T>
[[nodiscard]] Keyval<T> keyval(T& items) {
  return {items};
}

// A u32 count, then that many elements of each vector, one vector after the other.
template <typename... Vectors>
struct List {
  std::tuple<Vectors...> vectors;  // references, or Keyval
};
template <typename... Vectors>
[[nodiscard]] List<Vectors...> list(Vectors&&... vectors) {
  return {std::tuple<Vectors...>(std::forward<Vectors>(vectors)...)};
}

// `count` elements; the count is elsewhere in the message. Decoding checks it.
template <typename Vector>
struct Array {
  Vector& items;
  std::uint64_t count;
};
template <typename Vector>
[[nodiscard]] Array<Vector> array(Vector& items, std::uint64_t count) {
  return {items, count};
}

// `size` bytes of contents; the size is elsewhere in the message. Encoding may leave them out.
template <typename Vector>
struct Payload {
  Vector& bytes;
  std::int64_t size;
};
template <typename Vector>
[[nodiscard]] Payload<Vector> payload(Vector& bytes, std::int64_t size) {
  return {bytes, size};
}

// The least size of one element on the wire. It limits what a count can make a decoder allocate.
template <typename T>
inline constexpr std::size_t kMinWireSize = [] {
  static_assert(std::is_scalar_v<T>, "say what it takes on the wire");
  return sizeof(T);
}();
template <>
inline constexpr std::size_t kMinWireSize<HandleExtent> = 16;
template <>
inline constexpr std::size_t kMinWireSize<MirrorResponse::Result> = 8;
template <>
inline constexpr std::size_t kMinWireSize<std::string> = 8;
template <>
inline constexpr std::size_t kMinWireSize<Hint> = 8;
template <>
inline constexpr std::size_t kMinWireSize<FileRequestElement> = 80;
template <>
inline constexpr std::size_t kMinWireSize<Attributes> = 48;
template <>
inline constexpr std::size_t kMinWireSize<ReaddirResponse::Entry> = 16;
template <>
inline constexpr std::size_t kMinWireSize<MirrorRequest::Destination> = 12;
template <>
inline constexpr std::size_t kMinWireSize<MgmtDspaceInfoListResponse::Info> = 40;
template <>
inline constexpr std::size_t kMinWireSize<MgmtGetUidResponse::Use> = 36;

// The places of undefined bytes and lengths that a decoder met; for tests.
struct WireTrace {
  struct Range {
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  std::vector<Range> pads;
  std::vector<Range> lengths;
};

class WireDecoder {
 public:
  static constexpr bool kDecodes = true;

  explicit WireDecoder(std::span<const std::byte> payload, WireTrace* trace = nullptr)
      : in_(payload), trace_(trace) {}

  template <typename... Items>
  void operator()(Items&&... items) {
    (item(items), ...);
  }
  template <typename... Items>
  void named(std::string_view, Items&&... items) {
    (item(items), ...);
  }

  // Primitives for callers that borrow instead of copying.
  [[nodiscard]] std::string_view text();
  [[nodiscard]] std::string_view keyval_text();
  [[nodiscard]] std::uint32_t count(std::size_t min_element_size);
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t size) { return in_.bytes(size); }
  [[nodiscard]] std::uint32_t u32() { return in_.u32(); }
  [[nodiscard]] std::size_t offset() const { return in_.offset(); }
  void pad(std::size_t size);
  void align8() { pad((8 - in_.offset() % 8) % 8); }

  void fail(DecodeError error) {
    if (!in_.failed()) error_ = error;
    in_.fail();
  }
  [[nodiscard]] bool failed() const { return in_.failed(); }
  // Whether decoding succeeded and used every byte.
  [[nodiscard]] std::expected<void, DecodeError> finish() const;

 private:
  void item(std::uint32_t& value) { value = in_.u32(); }
  void item(std::int32_t& value) { value = in_.i32(); }
  void item(std::uint64_t& value) { value = in_.u64(); }
  void item(std::int64_t& value) { value = in_.i64(); }
  template <typename E>
  requires std::is_enum_v<E>
  void item(E& value) { value = static_cast<E>(in_.u32()); }
  void item(std::string& value) { value = text(); }
  void item(const Pad4&) { pad(4); }
  void item(const Align8&) { align8(); }
  void item(Keyval<std::string>& value) { value.items = keyval_text(); }
  template <typename... Vectors>
  void item(List<Vectors...>& lists) {
    std::apply(
        [this](auto&... vectors) {
          const std::uint64_t size = count((element_size(vectors) + ...));
          (elements(vectors, size), ...);
        },
        lists.vectors);
  }
  template <typename Vector>
  void item(Array<Vector>& items) {
    if (items.count > in_.remaining() / kMinWireSize<typename Vector::value_type>) {
      return fail(DecodeError::truncated);
    }
    elements(items.items, items.count);
  }
  template <typename Vector>
  void item(Payload<Vector>& run) {
    if (run.size < 0) return fail(DecodeError::bad_value);
    const std::span<const std::byte> found = bytes(static_cast<std::size_t>(run.size));
    run.bytes.assign(found.begin(), found.end());
  }
  template <typename T>
  requires std::is_class_v<T>
  void item(T& value) { fields(*this, value); }

  template <typename T>
  [[nodiscard]] static constexpr std::size_t element_size(const std::vector<T>&) {
    return kMinWireSize<T>;
  }
  template <typename V>
  [[nodiscard]] static constexpr std::size_t element_size(const Keyval<V>&) {
    return kMinWireSize<std::string>;
  }
  template <typename T>
  void elements(std::vector<T>& items, std::uint64_t size) {
    if (failed()) return;
    items.resize(static_cast<std::size_t>(size));
    for (T& element : items) {
      if (failed()) return;
      item(element);
    }
  }
  void elements(std::vector<std::byte>& items, std::uint64_t size) {
    const std::span<const std::byte> run = bytes(static_cast<std::size_t>(size));
    items.assign(run.begin(), run.end());
  }
  template <typename V>
  void elements(Keyval<V>& items, std::uint64_t size) {
    if (failed()) return;
    items.items.resize(static_cast<std::size_t>(size));
    for (std::string& element : items.items) element = keyval_text();
  }

  ByteReader in_;
  WireTrace* trace_;
  DecodeError error_ = DecodeError::truncated;
};

class WireEncoder {
 public:
  static constexpr bool kDecodes = false;

  enum class Contents { written, left_out };

  explicit WireEncoder(std::vector<std::byte>& out, Contents contents = Contents::written)
      : out_(out), contents_(contents) {}

  template <typename... Items>
  void operator()(const Items&... items) {
    (item(items), ...);
  }
  template <typename... Items>
  void named(std::string_view, const Items&... items) {
    (item(items), ...);
  }
  void fail(DecodeError) {}

 private:
  void item(std::uint32_t value) { out_.u32(value); }
  void item(std::int32_t value) { out_.i32(value); }
  void item(std::uint64_t value) { out_.u64(value); }
  void item(std::int64_t value) { out_.i64(value); }
  template <typename E>
  requires std::is_enum_v<E>
  void item(E value) { out_.u32(static_cast<std::uint32_t>(value)); }
  void item(const std::string& value);
  void item(const Pad4&) { out_.zeros(4); }
  void item(const Align8&) { out_.align(8); }
  void item(const Keyval<const std::string>& value) { keyval_text(value.items); }
  template <typename... Vectors>
  void item(const List<Vectors...>& lists) {
    std::apply(
        [this](const auto& first, const auto&... rest) {
          const std::size_t size = size_of(first);
          VPFS_ASSERT(((size_of(rest) == size) && ...));
          count(size);
          elements(first);
          (elements(rest), ...);
        },
        lists.vectors);
  }
  template <typename Vector>
  void item(const Array<Vector>& items) {
    VPFS_ASSERT(items.count == items.items.size());
    elements(items.items);
  }
  template <typename Vector>
  void item(const Payload<Vector>& run) {
    if (contents_ == Contents::left_out) return;
    VPFS_ASSERT(run.size >= 0 && static_cast<std::size_t>(run.size) == run.bytes.size());
    out_.bytes(run.bytes);
  }
  template <typename T>
  requires std::is_class_v<T>
  void item(const T& value) { fields(*this, value); }

  template <typename T>
  [[nodiscard]] static std::size_t size_of(const std::vector<T>& items) {
    return items.size();
  }
  template <typename V>
  [[nodiscard]] static std::size_t size_of(const Keyval<V>& items) {
    return items.items.size();
  }
  template <typename T>
  void elements(const std::vector<T>& items) {
    for (const T& element : items) item(element);
  }
  void elements(const std::vector<std::byte>& items) { out_.bytes(items); }
  template <typename V>
  void elements(const Keyval<V>& items) {
    for (const std::string& element : items.items) keyval_text(element);
  }
  void keyval_text(std::string_view value);
  void count(std::size_t size) {
    VPFS_ASSERT(size <= std::numeric_limits<std::uint32_t>::max());
    out_.u32(static_cast<std::uint32_t>(size));
  }

  ByteWriter out_;
  Contents contents_;
};

}  // namespace vpfs::orangefs
