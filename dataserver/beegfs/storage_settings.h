#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/device_model.h"
#include "base/units.h"
#include "protocols/beegfs/message_header.h"

namespace vpfs::dataserver {

// How a BeegfsStorage behaves; the defaults are those of a real storage server.
struct StorageSettings {
  std::uint16_t port = 0;    // of 127.0.0.1; 0: a free one
  bool any_address = false;  // of all addresses instead
  std::vector<std::uint16_t> targets = {101};
  std::size_t workers = 12;  // of each target
  // Reads are answered in pieces. A file handle gets large ones until it has read this many bytes
  // in sequence.
  Bytes first_piece = {4 * kMiB - 8 * kKiB};
  Bytes first_pieces_until = {4 * kMiB};
  Bytes piece = {128 * kKiB};
  Duration header_patience = std::chrono::seconds(5);
  Duration body_patience = std::chrono::seconds(5);
  Duration data_patience = std::chrono::seconds(90);
  // Every connection must send this first.
  std::optional<std::uint64_t> secret = {};
  std::optional<DeviceSettings> device = {};  // of each target
  Bytes capacity = {4 * kGiB};
  bool record = true;  // what every connection asked for
};

// A mistake that a storage server makes with the next requests of that type.
struct StorageFault {
  enum class Kind : std::uint8_t {
    silence,     // never answers; whatever else comes on the connection is dropped
    error,       // answers with -value; a read after `bytes` bytes
    cut_answer,  // closes after `bytes` bytes of a read's data
    cut_data,    // closes after `bytes` bytes of a write's data
    delay,       // answers after `delay`
    half_word,   // pauses for `delay` after `bytes` bytes of a read's first length word
    wrong_type,  // answers with GenericResponse
    too_much,    // a read: `bytes` bytes more than asked for; a write: as many more written
  };
  Kind kind = Kind::silence;
  beegfs::MessageType type = beegfs::MessageType::read_local_file;  // or write_local_file
  std::int32_t value = 0;
  std::uint64_t bytes = 0;
  Duration delay = {};
  std::uint64_t times = 1;  // requests; 0: all
};

struct SeenRequest {
  beegfs::MessageHeader header;
  // Only reads and writes have these.
  std::int64_t offset = 0;
  std::int64_t count = 0;
  std::uint32_t client = 0;
  std::string file_handle;
  std::uint32_t directory_owner = 0;
  std::string directory;

  bool header_in_pieces = false;
};

struct SeenConnection {
  std::vector<SeenRequest> requests;
  bool open = true;
};

// What a BeegfsStorage has seen so far.
struct StorageRecord {
  std::vector<SeenConnection> connections;  // as they were accepted
  std::size_t open_connections = 0;
  // Reads and writes whose header has arrived and whose answer has not been sent whole.
  std::size_t outstanding = 0;
  std::size_t peak_outstanding = 0;
  std::uint64_t reads = 0;  // answered
  std::uint64_t writes = 0;
  std::uint64_t headers_in_pieces = 0;
  std::uint64_t dropped = 0;    // connections, because of their input
  std::size_t faults_left = 0;  // not yet made as often as asked for
};

}  // namespace vpfs::dataserver
