#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// A model of a client and a data server that exchange only what matters for the cost of relaying:
// requests of 300 bytes, answers of 40 bytes, and file data in messages of at most 256 KiB.
namespace vpfs::bench {

struct Workload {
  bool write = false;
  std::size_t size = 4096;      // file bytes of one operation
  std::size_t outstanding = 1;  // operations in flight on each connection
  std::size_t connections = 1;
};

// All messages of one operation, for each direction.
[[nodiscard]] std::vector<std::byte> request_of(const Workload& workload);
[[nodiscard]] std::vector<std::byte> answer_of(const Workload& workload);

// The two ends of a TCP connection over loopback, non-blocking, with TCP_NODELAY and this
// congestion control ("": the system's). Throws std::system_error.
[[nodiscard]] std::pair<int, int> connected_sockets(const std::string& congestion_control);

// One side of the model, on one thread. It sends `initial` units on every socket, and then one for
// every unit that it has received completely. Sockets are borrowed.
class Peer {
 public:
  Peer(const std::vector<int>& sockets, std::vector<std::byte> sent_unit,
       std::size_t received_unit_size, std::size_t initial);

  // Runs until `stop` is set or a connection ends.
  void run(const std::atomic<bool>& stop);
  [[nodiscard]] std::uint64_t units_received() const { return units_received_; }

 private:
  struct PeerConnection {
    int socket = -1;
    std::size_t received = 0;   // bytes of the current unit
    std::size_t units_due = 0;  // units to send
    std::size_t sent = 0;       // bytes of the first of these
  };

  // False when the connection has ended.
  [[nodiscard]] bool receive(PeerConnection& connection);
  [[nodiscard]] bool send(PeerConnection& connection);

  std::vector<PeerConnection> connections_;
  std::vector<std::byte> unit_;
  std::size_t received_unit_size_;
  std::vector<std::byte> scratch_;
  std::atomic<std::uint64_t> units_received_ = 0;
};

}  // namespace vpfs::bench
