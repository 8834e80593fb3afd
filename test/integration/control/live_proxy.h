#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/integration/control/http_get.h"
#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"
#include "test/tools/vpfsctl/proxies.h"

namespace vpfs::test {

// A real vpfs-proxy with a control port and a journal, in front of a data server that the test
// plays. Each job id has a virtual PFS of its own.
class LiveProxy {
 public:
  static constexpr const char* kRules =
      "[{name: jobs, match: {hint: {jobid: '*'}}, virtual_pfs: 'job-{jobid}'}]";

  explicit LiveProxy(unsigned depth = 16, const std::string& control = "",
                     const std::string& extra = "")
      : control_(control), extra_(extra), proxy_(settings(kRules, depth)) {}

  [[nodiscard]] ProxySettings settings(const std::string& rules, unsigned depth = 16) const {
    return {
        .upstream = server_.port(),
        .workers = 2,
        .depth = depth,
        .control = fmt::format("socket: {0}/px.sock, journal: {0}/journal, audit: {0}/audit, "
                               "name: s0{1}{2}",
                               directory_.path().string(), control_.empty() ? "" : ", ", control_),
        .virtual_pfs = "'job-{jobid}': {weight: 1}",
        .rules = rules + extra_};
  }

  // Runs vpfsctl for this proxy.
  [[nodiscard]] Outcome ctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--proxy", socket()});
    return vpfsctl(std::move(arguments));
  }
  // The command must succeed.
  void run(const std::vector<std::string>& arguments) const {
    const Outcome outcome = ctl(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  }
  [[nodiscard]] nlohmann::json data(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "--json");
    const Outcome outcome = ctl(std::move(arguments));
    const auto json = nlohmann::json::parse(outcome.output, nullptr, false);
    if (json.is_discarded() || json["proxies"][0]["data"].is_null()) {
      ADD_FAILURE() << outcome.output << outcome.errors;
      return {};
    }
    return json["proxies"][0]["data"];
  }
  [[nodiscard]] std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const auto& each : data({"rule", "list"})["rules"]) names.push_back(each["name"]);
    return names;
  }
  [[nodiscard]] nlohmann::json rule(const std::string& name) const {
    for (const auto& each : data({"rule", "list"})["rules"]) {
      if (each["name"] == name) return each;
    }
    ADD_FAILURE() << "no rule " << name;
    return {};
  }

  // A request of this job, from the client to the server and back.
  void serve(ProxiedLink& link, const std::string& job) {
    ask(link, job);
    pass(link);
  }
  void ask(ProxiedLink& link, const std::string& job) {
    ASSERT_TRUE(link.client.send(io_request(++tag_, {.job = job})));
  }
  // The server answers the next request that reaches it.
  static void pass(ProxiedLink& link) {
    const auto request = link.server.receive();
    ASSERT_TRUE(request);
    ASSERT_TRUE(link.server.send(io_response(request->header.tag, 0)));
    const auto answer = link.client.receive();
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->header.tag, request->header.tag);
  }
  [[nodiscard]] ProxiedLink open() { return open_link(proxy_, server_); }

  [[nodiscard]] std::string socket() const { return directory_.path() / "px.sock"; }
  [[nodiscard]] std::string journal() const { return directory_.path() / "journal"; }
  [[nodiscard]] std::string audit() const { return directory_.path() / "audit"; }
  [[nodiscard]] const TemporaryDirectory& directory() const { return directory_; }
  [[nodiscard]] ProxyProcess& proxy() { return proxy_; }

 private:
  TemporaryDirectory directory_;
  std::string control_;
  std::string extra_;
  FakeDataServer server_;
  ProxyProcess proxy_;
  orangefs::Tag tag_ = 0;
};

}  // namespace vpfs::test
