#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "test/dataserver/orangefs/server_fixture.h"
#include "test/support/servers/orangefs_user.h"

// Users of whole servers on loopback, message by message.
namespace vpfs::dataserver {

using orangefs::Status;
using test::OrangefsUser;
using test::OrangefsWireClient;
using test::RunningFileSystem;

inline Status status(int error) {
  return orangefs::status_from_errno(error);
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A user with a connection to every server.
class Session {
 public:
  explicit Session(const RunningFileSystem& servers, std::uint32_t count = 1, std::uint32_t uid = 0)
      : user(RunningFileSystem::kId, uid), ranges_(count) {
    for (std::uint32_t i = 0; i < count; ++i) clients_.emplace_back(servers.port(i));
  }

  OrangefsWireClient& at(std::uint32_t server) { return clients_[server]; }
  OrangefsWireClient& of(orangefs::Handle handle) {
    return clients_[ranges_.server_of(handle).value()];
  }

  // The response's status, and its body if wanted.
  Status ask(const orangefs::Request& request, std::uint32_t server = 0) {
    const auto response = at(server).call(request);
    return response ? response->status : -1;
  }
  template <typename Body>
  Body get(const orangefs::Request& request, std::uint32_t server = 0) {
    auto response = at(server).call(request);
    const Body* body = response ? std::get_if<Body>(&response->body) : nullptr;
    EXPECT_NE(body, nullptr) << (response ? response->status : -1);
    return body == nullptr ? Body{} : *body;
  }
  orangefs::Attributes attributes(orangefs::Handle handle) {
    return get<orangefs::AttributesResponse>(user.getattr(handle),
                                             ranges_.server_of(handle).value())
        .attributes;
  }
  // Creates a file in the root directory, with its metadata on a given server.
  orangefs::Handle create(const std::string& name, int datafiles, std::uint32_t server = 0) {
    const orangefs::Attributes root = attributes(OrangefsUser::kRoot);
    const auto made = get<orangefs::CreateResponse>(user.create(root, datafiles), server);
    EXPECT_EQ(ask(user.link(root, OrangefsUser::kRoot, name, made.metafile_handle)), 0);
    return made.metafile_handle;
  }

  OrangefsUser user;

 private:
  HandleRanges ranges_;
  std::vector<OrangefsWireClient> clients_;
};

// Writes a byte range of one datafile with a flow, in messages of 256 KiB.
inline Status write_flow(OrangefsWireClient& client, const orangefs::Request& request,
                         const std::string& data, std::int64_t* completed = nullptr) {
  const orangefs::Tag tag = client.send(request);
  const auto ready = client.receive_response(tag);
  if (!ready || ready->status != 0) return ready ? ready->status : -1;
  const auto bytes = std::as_bytes(std::span(data));
  for (std::size_t done = 0; done < bytes.size(); done += 262144) {
    client.send_data(tag, bytes.subspan(done, std::min<std::size_t>(262144, bytes.size() - done)));
  }
  const auto end = client.receive_response(tag);
  if (!end) return -1;
  if (const auto* body = std::get_if<orangefs::WriteCompletionResponse>(&end->body)) {
    if (completed != nullptr) *completed = body->total_completed;
  }
  return end->status;
}

// The data of a read flow of `size` bytes; checks the size of every message.
inline std::string read_flow(OrangefsWireClient& client, const orangefs::Request& request,
                             std::size_t size) {
  const orangefs::Tag tag = client.send(request);
  const auto ready = client.receive_response(tag);
  if (!ready || ready->status != 0) return "refused";
  std::string data;
  while (data.size() < size) {
    const auto message = client.receive();
    if (!message || message->header.tag != tag) return "broken";
    EXPECT_EQ(message->payload.size(), std::min<std::size_t>(262144, size - data.size()));
    EXPECT_EQ(message->header.mode, orangefs::expected_mode(message->payload.size()));
    data += text_of(message->payload);
  }
  return data;
}

inline std::string pattern(std::size_t size) {
  std::string data(size, '\0');
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<char>((i * 2654435761U) >> 13);
  return data;
}

}  // namespace vpfs::dataserver
