#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "dataserver/orangefs/io_plan.h"
#include "dataserver/orangefs/operations.h"
#include "net/input_stream.h"
#include "net/output_queue.h"
#include "net/signal.h"

namespace vpfs::dataserver {

// One client's connection. Reads messages until the client hangs up or breaks the framing.
// Operations run concurrently and answer through one output queue as they complete. The connection
// is shared by its coroutines and ends with the last of them.
//
// Memory is bounded. Reading stops while kMostOperations run that need no data of the client.
// Operations delay their answers while the client leaves kMostOutput bytes unread. At most
// kMostUncommitted pieces of writes are on their way to the store.
class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  static constexpr std::size_t kMostOperations = 1024;
  static constexpr std::size_t kMostWriteFlows = 65536;
  static constexpr std::size_t kMostUncommitted = 16;
  static constexpr std::uint64_t kMostOutput = 2 * kMiB;

  ClientConnection(ServerContext& context, Operations& operations, net::Socket socket);

  // `closed` is called once, after the connection's last coroutine has ended.
  void start(std::function<void()> closed);
  void close();

  // For the server's watch over stalled messages: a counter of arrivals, and whether the connection
  // waits for the rest of a message or write.
  [[nodiscard]] std::uint64_t arrivals() const { return arrivals_; }
  [[nodiscard]] bool waits_for_more() const { return in_message_ || !write_flows_.empty(); }
  // Closes the connection and logs the reason.
  void give_up(const char* reason);

 private:
  using Self = std::shared_ptr<ClientConnection>;

  // A write whose data are arriving.
  struct WriteFlow {
    WriteFlow(orangefs::Tag its_tag, const IoPlan& its_plan)
        : tag(its_tag), plan(its_plan), walk(plan) {}

    orangefs::Tag tag;
    IoPlan plan;
    SegmentWalk walk;  // the bytes that have not arrived yet
    std::int64_t received = 0;
    Outcome<void> stored;         // the first piece that failed says why
    std::size_t uncommitted = 0;  // pieces on their way to the store
  };
  using WriteFlowPtr = std::shared_ptr<WriteFlow>;  // shared with the pieces under way

  // The static coroutines own the connection through `self`.
  static net::Task<void> read_messages(Self self);
  static net::Task<void> run_operation(Self self, orangefs::Tag tag, orangefs::Request request);
  static net::Task<void> run_read(Self self, orangefs::Tag tag, IoPlan plan);
  static net::Task<void> run_small_io(Self self, orangefs::Tag tag, IoPlan plan,
                                      std::vector<std::byte> data);
  static net::Task<void> settle_piece(Self self, WriteFlowPtr flow, BstreamStore::Window window,
                                      bool first);

  [[nodiscard]] net::Task<bool> take_message();
  [[nodiscard]] net::Task<bool> take_request(orangefs::BmiHeader header);
  [[nodiscard]] net::Task<bool> take_data(orangefs::BmiHeader header);
  // Reads the next bytes of a write into the store. False when the connection is lost.
  [[nodiscard]] net::Task<bool> take_piece(WriteFlowPtr flow, SegmentWalk::Segment piece);
  [[nodiscard]] net::Task<bool> dispatch(orangefs::Tag tag, orangefs::Request request);
  [[nodiscard]] bool start_write(orangefs::Tag tag, const IoPlan& plan);

  [[nodiscard]] net::Task<void> small_read(orangefs::Tag tag, IoPlan plan);
  [[nodiscard]] net::Task<void> small_write(orangefs::Tag tag, IoPlan plan,
                                            std::vector<std::byte> data);
  [[nodiscard]] net::Task<Outcome<void>> store_piece(orangefs::Handle handle, std::int64_t offset,
                                                     std::span<const std::byte> data);
  // Waits until the client has taken enough of its output; false when it is gone.
  [[nodiscard]] net::Task<bool> output_has_room();
  void finish_write(WriteFlow& flow);
  void send_error(orangefs::Tag tag, orangefs::Op op, orangefs::Status status);
  void send_error(orangefs::Tag tag, orangefs::Op op, std::errc error);
  // `head` first, then the parts.
  void send_parts(std::vector<std::byte> head, std::vector<BstreamStore::Part> parts);
  // Runs a coroutine beside the reader; counted until it ends.
  void spawn(net::Task<void> task);
  void operation_ended();

  ServerContext& context_;
  Operations& operations_;
  net::Socket socket_;
  std::string peer_;  // for the log
  net::InputStream input_;
  net::OutputQueue output_;
  std::unordered_map<orangefs::Tag, WriteFlowPtr> write_flows_;
  std::size_t running_ = 0;
  std::size_t uncommitted_ = 0;
  net::Signal has_room_;
  std::function<void()> closed_;
  bool reading_ = false;
  bool in_message_ = false;
  bool shut_ = false;
  std::uint64_t arrivals_ = 0;
};

}  // namespace vpfs::dataserver
