#include "dataserver/orangefs/peers.h"

#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/endpoint.h"
#include "net/input_stream.h"
#include "net/output_queue.h"
#include "net/signal.h"
#include "protocols/orangefs/errors.h"

namespace vpfs::dataserver {
namespace {
constexpr std::size_t kPeerInputSize = 64 * 1024;
constexpr std::size_t kMostResponse = kPeerInputSize - orangefs::kBmiHeaderSize;

std::unexpected<orangefs::Status> no_answer(int error) {
  return std::unexpected(orangefs::status_from_errno(error));
}
}  // namespace

// One connection to another server.
class Peers::ServerLink : public std::enable_shared_from_this<ServerLink> {
 public:
  ServerLink(asio::io_context& context, net::Socket socket)
      : context_(context),
        socket_(std::move(socket)),
        input_(socket_, kPeerInputSize),
        output_(socket_) {}

  void start() { asio::co_spawn(context_, read_responses(shared_from_this()), asio::detached); }
  [[nodiscard]] bool open() const { return output_.open(); }

  net::Task<Reply> call(orangefs::Request request, Duration patience) {
    const auto self = shared_from_this();
    const orangefs::Tag tag = next_tag_++;
    Waiting waiting(context_);
    waiting_.emplace(tag, &waiting);
    output_.send(orangefs::request_message(tag, request));
    const bool in_time = co_await waiting.ended.wait_for(patience);
    waiting_.erase(tag);
    if (waiting.response) co_return std::move(*waiting.response);
    if (!in_time) {
      close();
      co_return no_answer(ETIMEDOUT);
    }
    co_return no_answer(ECONNRESET);
  }

  void close() {
    std::error_code ignored;
    output_.close();
    socket_.close(ignored);
    for (auto& [tag, waiting] : waiting_) waiting->ended.notify_all();
  }

 private:
  struct Waiting {
    explicit Waiting(asio::io_context& context) : ended(context.get_executor()) {}
    net::Signal ended;
    std::optional<orangefs::Response> response;
  };

  // Static, so that the coroutine owns the link.
  static net::Task<void> read_responses(std::shared_ptr<ServerLink> self) {
    while (co_await self->read_response()) {
    }
    self->close();
  }

  net::Task<bool> read_response() {
    if (!co_await input_.fill(orangefs::kBmiHeaderSize)) co_return false;
    const auto header = orangefs::decode_bmi_header(input_.buffered(), kMostResponse);
    if (!header) {
      spdlog::warn("another server: {}", orangefs::describe(header.error()));
      co_return false;
    }
    input_.consume(orangefs::kBmiHeaderSize);
    const auto size = static_cast<std::size_t>(header->payload_size);
    if (!co_await input_.fill(size)) co_return false;
    auto response = orangefs::decode_response(input_.buffered().first(size));
    input_.consume(size);
    if (!response) {
      spdlog::warn("another server: {}", orangefs::describe(response.error()));
      co_return false;
    }
    if (const auto found = waiting_.find(header->tag); found != waiting_.end()) {
      found->second->response = std::move(*response);
      found->second->ended.notify_all();
    }
    co_return true;
  }

  asio::io_context& context_;
  net::Socket socket_;
  net::InputStream input_;
  net::OutputQueue output_;
  orangefs::Tag next_tag_ = 1;
  std::map<orangefs::Tag, Waiting*> waiting_;
};

Peers::Peers(asio::io_context& context, std::vector<net::Endpoint> endpoints, Duration patience)
    : context_(context),
      endpoints_(std::move(endpoints)),
      patience_(patience),
      links_(endpoints_.size()) {}

Peers::~Peers() {
  close();
}

void Peers::close() {
  closed_ = true;
  for (const std::shared_ptr<ServerLink>& link : links_) {
    if (link) link->close();
  }
}

net::Task<Peers::Reply> Peers::call(std::uint32_t server, orangefs::Request request) {
  if (!links_[server] || !links_[server]->open()) {
    Result<net::Socket> socket = co_await net::connect(endpoints_[server], patience_);
    if (closed_) co_return no_answer(ECONNRESET);
    if (!socket) {
      spdlog::warn("{}", socket.error().message);
      co_return no_answer(socket.error().code == std::errc::timed_out ? ETIMEDOUT : ECONNREFUSED);
    }
    // Another call may have connected in the meantime.
    if (!links_[server] || !links_[server]->open()) {
      links_[server] = std::make_shared<ServerLink>(context_, std::move(*socket));
      links_[server]->start();
    }
  }
  const std::shared_ptr<ServerLink> link = links_[server];
  Reply response = co_await link->call(std::move(request), patience_);
  if (response && response->status != 0) co_return std::unexpected(response->status);
  co_return response;
}

}  // namespace vpfs::dataserver
