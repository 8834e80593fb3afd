#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <google/protobuf/arena.h>

#include "control/wire/control.pb.h"

namespace vpfs::control {

// A frame is a length of 4 bytes, big-endian, and so many bytes of an Envelope.
inline constexpr std::size_t kLengthSize = 4;
// A shorter Envelope has no body.
inline constexpr std::size_t kLeastFrame = 2;
// The longest answer of a port; clients take no longer one.
inline constexpr std::size_t kMostAnswer = std::size_t{64} * 1024 * 1024;

// Both mean that the stream has lost its framing: close the connection.
enum class FrameError : std::uint8_t { too_short, too_long };
[[nodiscard]] std::string to_string(FrameError error);

// Takes the first whole frame off `bytes`, without its length; nothing if more bytes are needed.
// `most`: the longest Envelope.
[[nodiscard]] std::expected<std::optional<std::span<const std::byte>>, FrameError> take_frame(
    std::span<const std::byte>& bytes, std::size_t most);

// Cuts a stream of bytes into frames.
//
// Memory grows with the bytes that have arrived, at most twofold, whatever a length claims, and is
// given back after a large frame.
class FrameReader {
 public:
  // `most`: the longest Envelope.
  explicit FrameReader(std::size_t most) : most_(most) {}

  // Changes the bound for frames that next() has not returned yet.
  void allow(std::size_t most) { most_ = most; }

  // Where to read to; at least 4 KiB. Call next() until it has no more frames before this, or what
  // is buffered has no bound.
  [[nodiscard]] std::span<std::byte> room();
  // So many bytes were put there.
  void received(std::size_t size);

  // The next whole frame without its length, valid until the next call of room(); nothing if more
  // bytes are needed.
  [[nodiscard]] std::expected<std::optional<std::span<const std::byte>>, FrameError> next();
  // Whether next() would return a frame or an error.
  [[nodiscard]] bool ready() const;

  [[nodiscard]] std::size_t buffered() const { return end_ - begin_; }
  [[nodiscard]] std::size_t capacity() const { return buffer_.capacity(); }

 private:
  [[nodiscard]] std::span<const std::byte> unread() const;

  std::size_t most_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Appends the frame of `envelope`, whose texts are made UTF-8 if they are not. False, and nothing
// appended, if the Envelope is longer than `most`.
[[nodiscard]] bool append_frame(const Envelope& envelope, std::size_t most, std::string& out);

// Whether `frame` is an Envelope. Fields that this version does not know are kept in it.
[[nodiscard]] bool decode(std::span<const std::byte> frame, Envelope& envelope);

// The memory of one received message after the other: what a message of thousands of parts took is
// there for the next one.
class MessageMemory {
 public:
  // An empty message, until end().
  [[nodiscard]] Envelope& begin();
  // What ports of coordinators, and of stages for cycles, keep.
  static constexpr std::size_t kUsual = std::size_t{1024} * 1024;
  // Keeps memory of at most `most` bytes.
  void end(std::size_t most);
  [[nodiscard]] std::size_t kept() const { return block_.size(); }

 private:
  std::vector<char> block_;
  std::optional<google::protobuf::Arena> arena_;
};

}  // namespace vpfs::control
