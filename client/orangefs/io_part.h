#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "base/byte_reader.h"
#include "client/orangefs/calls/exchange.h"
#include "client/orangefs/calls/request_template.h"
#include "client/orangefs/calls/server_connection.h"
#include "client/orangefs/strip_walk.h"
#include "net/latch.h"
#include "net/output_queue.h"
#include "protocols/orangefs/striping.h"
#include "protocols/orangefs/types.h"

namespace vpfs::client {

// The source or destination of an I/O's bytes; byte 0 belongs to the I/O's offset.
struct IoBytes {
  // For reads. When empty, the data are dropped without a copy.
  std::span<std::byte> into = {};
  // For writes. The file is used when its size is not zero.
  std::span<const std::byte> from = {};
  net::OutputQueue::FilePart file = {};
};

// The part of a read or write that one datafile serves: SMALL_IO or IO with its flow.
//
// Borrows the latch, the template and the memory of `bytes` until the latch has counted its end;
// after that nothing refers to that memory.
class IoPart final : public Exchange {
 public:
  struct Plan {
    orangefs::IoType type = orangefs::IoType::read;
    bool small = false;
    std::int64_t offset = 0;  // of the whole I/O in the file
    std::uint64_t size = 0;
    std::int64_t strip_size = 0;  // 0: one datafile holds everything
    orangefs::Handle datafile = 0;
    orangefs::Placement placement;
    std::uint64_t flow_buffer_size = orangefs::kDefaultFlowBufferSize;
    Duration patience = std::chrono::seconds(300);
  };

  // How many bytes of the plan's range are on its datafile.
  [[nodiscard]] static std::uint64_t bytes_on_datafile(const Plan& plan);

  IoPart(const Plan& plan, const IoBytes& bytes, net::Latch& latch);
  ~IoPart() override;

  void begin(std::shared_ptr<ServerConnection> connection, const RequestTemplate& request);

  // Valid after the latch. failure() is the transport's, status() the server's.
  [[nodiscard]] std::error_code failure() const { return failure_; }
  [[nodiscard]] orangefs::Status status() const { return status_; }
  [[nodiscard]] bool good() const { return !failure_ && status_ == 0; }
  // How many bytes were read or written, out of wanted().
  [[nodiscard]] std::uint64_t moved() const { return moved_; }
  [[nodiscard]] std::uint64_t wanted() const { return wanted_; }

 private:
  // Notifies its part once the last message that borrows the caller's bytes is released.
  struct Guard {
    explicit Guard(IoPart& owner) : part(&owner) {}
    ~Guard() { part->data_released(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    IoPart* part;
  };
  enum class Phase { response, read_flow, write_completion, ended };

  [[nodiscard]] bool reads_in_bulk() const override {
    return plan_.type == orangefs::IoType::read && !plan_.small;
  }
  [[nodiscard]] bool expects_data() const override { return phase_ == Phase::read_flow; }
  [[nodiscard]] bool on_response(std::span<const std::byte> payload) override;
  [[nodiscard]] bool on_data(std::uint64_t size) override;
  [[nodiscard]] Room next_room(std::uint64_t most) override;
  void on_data_end() override;
  void on_failure(std::error_code error) override;

  [[nodiscard]] bool on_small_io(ByteReader& in);
  [[nodiscard]] bool on_io(ByteReader& in);
  void send_flow();
  void add_pieces(net::OutputQueue::Message message, std::uint64_t size,
                  const std::shared_ptr<Guard>& guard);
  void take(std::uint64_t size);
  void end();
  void data_released();
  void finish();

  Plan plan_;
  IoBytes bytes_;
  net::Latch& latch_;
  StripWalk walk_;
  std::shared_ptr<ServerConnection> connection_;
  Phase phase_ = Phase::response;
  std::uint64_t wanted_ = 0;
  std::uint64_t remaining_ = 0;  // of the flow
  std::uint64_t moved_ = 0;
  bool borrowed_ = false;  // messages in the output queue refer to the caller's bytes
  orangefs::Status status_ = 0;
  std::error_code failure_;
};

}  // namespace vpfs::client
