#include "dataserver/orangefs/client_connection.h"

#include <cerrno>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/endpoint.h"

namespace vpfs::dataserver {
namespace {

// Holds one request message with its header, and some of what follows it.
constexpr std::size_t kInputSize = 32 * kKiB;

std::string describe_peer(const net::Socket& socket) {
  std::error_code error;
  const net::Endpoint endpoint = socket.remote_endpoint(error);
  return error ? std::string("a client") : net::to_string(endpoint);
}

}  // namespace

ClientConnection::ClientConnection(ServerContext& context, Operations& operations,
                                   net::Socket socket)
    : context_(context),
      operations_(operations),
      socket_(std::move(socket)),
      peer_(describe_peer(socket_)),
      input_(socket_, kInputSize),
      output_(socket_),
      has_room_(context.io.get_executor()) {}

void ClientConnection::start(std::function<void()> closed) {
  closed_ = std::move(closed);
  reading_ = true;
  asio::co_spawn(context_.io, read_messages(shared_from_this()),
                 [self = shared_from_this()](std::exception_ptr error) {
                   if (error) self->give_up("an internal error");
                   self->reading_ = false;
                   self->operation_ended();
                 });
}

void ClientConnection::close() {
  if (shut_) return;
  shut_ = true;
  output_.close();
  std::error_code ignored;
  socket_.close(ignored);
  write_flows_.clear();
  has_room_.notify_all();
}

void ClientConnection::give_up(const char* reason) {
  if (shut_) return;
  spdlog::warn("connection from {} closed: {}", peer_, reason);
  close();
}

void ClientConnection::spawn(net::Task<void> task) {
  ++running_;
  asio::co_spawn(context_.io, std::move(task),
                 [self = shared_from_this()](std::exception_ptr error) {
                   if (error) self->give_up("an internal error");
                   --self->running_;
                   self->has_room_.notify_all();
                   self->operation_ended();
                 });
}

void ClientConnection::operation_ended() {
  if (!reading_ && running_ == 0 && closed_) std::exchange(closed_, nullptr)();
}

net::Task<void> ClientConnection::read_messages(Self self) {
  while (co_await self->take_message()) {
    while (self->running_ >= kMostOperations && !self->shut_) co_await self->has_room_.wait();
  }
  if (self->in_message_) self->give_up("the stream ended in the middle of a message");
  self->close();
}

net::Task<bool> ClientConnection::take_message() {
  // Data of writes bypass the buffer on their way to the store.
  const std::size_t most = write_flows_.empty() ? kInputSize : orangefs::kBmiHeaderSize;
  if (!co_await input_.fill(orangefs::kBmiHeaderSize, most)) {
    in_message_ = !shut_ && !input_.buffered().empty();
    co_return false;
  }
  const auto header = orangefs::decode_bmi_header(input_.buffered());
  if (!header) {
    give_up(orangefs::describe(header.error()));
    co_return false;
  }
  input_.consume(orangefs::kBmiHeaderSize);
  ++arrivals_;
  in_message_ = true;
  const bool request = header->mode == orangefs::BmiMode::unexpected;
  net::Task<bool> taken = request ? take_request(*header) : take_data(*header);
  const bool go_on = co_await std::move(taken);
  if (go_on) in_message_ = false;
  co_return go_on && !shut_;
}

net::Task<bool> ClientConnection::take_request(orangefs::BmiHeader header) {
  if (header.payload_size > orangefs::kMaxEagerSize) {
    give_up("a request of more than 16 KiB");
    co_return false;
  }
  // Some requests are answered right here, so a client that reads no answers is not read from.
  if (!co_await output_has_room()) co_return false;
  const auto size = static_cast<std::size_t>(header.payload_size);
  if (!co_await input_.fill(size)) co_return false;
  auto request = orangefs::decode_request(input_.buffered().first(size));
  input_.consume(size);
  if (!request) {
    spdlog::warn("{}: a request that cannot be decoded: {}", peer_,
                 orangefs::describe(request.error()));
    const bool unknown = request.error() == orangefs::DecodeError::unknown_operation;
    send_error(header.tag, orangefs::Op::proto_error, status_of(unknown ? ENOSYS : EPROTO));
    co_return true;
  }
  co_return co_await dispatch(header.tag, std::move(*request));
}

net::Task<bool> ClientConnection::dispatch(orangefs::Tag tag, orangefs::Request request) {
  const bool in_order = context_.bstreams.immediate() && !context_.device.modelled();
  if (auto* small = std::get_if<orangefs::SmallIoRequest>(&request.body)) {
    const auto plan = plan_io(*small, request, context_.ranges, context_.self);
    if (!plan || small->fs_id != context_.config.id) {
      send_error(tag, orangefs::Op::small_io, plan ? status_of(ENODEV) : status_of(plan.error()));
      co_return true;
    }
    net::Task<void> task = run_small_io(shared_from_this(), tag, *plan, std::move(small->data));
    if (in_order) {
      co_await std::move(task);
    } else {
      spawn(std::move(task));
    }
    co_return true;
  }
  if (const auto* io = std::get_if<orangefs::IoRequestBody>(&request.body)) {
    const auto plan = plan_io(*io, request, context_.ranges, context_.self);
    if (!plan || io->fs_id != context_.config.id) {
      send_error(tag, orangefs::Op::io, plan ? status_of(ENODEV) : status_of(plan.error()));
      co_return true;
    }
    if (plan->type == orangefs::IoType::write) co_return start_write(tag, *plan);
    spawn(run_read(shared_from_this(), tag, *plan));
    co_return true;
  }
  spawn(run_operation(shared_from_this(), tag, std::move(request)));
  co_return true;
}

net::Task<void> ClientConnection::run_operation(Self self, orangefs::Tag tag,
                                                orangefs::Request request) {
  if (!co_await self->output_has_room()) co_return;
  const orangefs::Response response = co_await self->operations_.handle(request);
  if (!co_await self->output_has_room()) co_return;
  self->output_.send(orangefs::response_message(tag, response));
}

net::Task<bool> ClientConnection::output_has_room() {
  if (output_.pending() <= kMostOutput) co_return output_.open();
  co_return co_await output_.wait_until_pending_at_most(kMostOutput);
}

void ClientConnection::send_error(orangefs::Tag tag, orangefs::Op op, orangefs::Status status) {
  output_.send(orangefs::error_message(tag, op, status));
}

void ClientConnection::send_error(orangefs::Tag tag, orangefs::Op op, std::errc error) {
  send_error(tag, op, status_of(error));
}

void ClientConnection::send_parts(std::vector<std::byte> head,
                                  std::vector<BstreamStore::Part> parts) {
  for (BstreamStore::Part& part : parts) {
    net::OutputQueue::Message message;
    message.head = std::exchange(head, {});
    message.payload = part.bytes;
    message.owner = std::move(part.owner);
    output_.send(std::move(message));
  }
  if (!head.empty()) output_.send(std::move(head));
}

}  // namespace vpfs::dataserver
