#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// A model of a client and a data server that say no more than what costs something to relay:
// requests of 300 bytes, answers of 40, file data in messages of at most 256 KiB.
namespace vpfs::bench {

struct Workload {
  bool write = false;
  std::size_t size = 4096;      // file bytes of one operation
  std::size_t outstanding = 1;  // operations in flight on each connection
  std::size_t connections = 1;
};

// All messages of one operation in one direction.
[[nodiscard]] std::vector<std::byte> request_of(const Workload& workload);
[[nodiscard]] std::vector<std::byte> answer_of(const Workload& workload);

// The two ends of a TCP connection over loopback, non-blocking, with TCP_NODELAY and this
// congestion control ("": the system's). Throws std::system_error.
[[nodiscard]] std::pair<int, int> connected_sockets(const std::string& congestion_control);

// One side of the model on one thread: sends `initial` units on every socket, and one more for
// every unit that it has received whole. Sockets are borrowed.
class Peer {
 public:
  Peer(const std::vector<int>& sockets, std::vector<std::byte> sent_unit,
       std::size_t received_unit_size, std::size_t initial);

  // Until `stop`, or a connection ends.
  void run(const std::atomic<bool>& stop);
  [[nodiscard]] std::uint64_t units_received() const { return units_received_; }

 private:
  struct Connection {
    int socket = -1;
    std::size_t received = 0;   // of the current unit
    std::size_t units_due = 0;  // to send
    std::size_t sent = 0;       // of the first of them
  };

  // False when the connection has ended.
  [[nodiscard]] bool receive(Connection& connection);
  [[nodiscard]] bool send(Connection& connection);

  std::vector<Connection> connections_;
  std::vector<std::byte> unit_;
  std::size_t received_unit_size_;
  std::vector<std::byte> scratch_;
  std::atomic<std::uint64_t> units_received_ = 0;
};

}  // namespace vpfs::bench
