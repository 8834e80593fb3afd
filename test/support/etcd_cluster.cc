#include "test/support/etcd_cluster.h"

#include <cctype>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "test/support/places.h"

namespace vpfs::test {
namespace {

constexpr const char* kRoot = "root:secret-of-root";
constexpr const char* kUser = "coordinator";
constexpr const char* kPassword = "secret of the coordinator";

bool is_on_path(const std::string& program) {
  Process found({"sh", "-c", "command -v " + program});
  const auto end = found.wait();
  return end && end->ok();
}

// A certificate without a common name: with one, etcd's gateway takes no user. script/certificates
// makes none.
std::string nameless_certificate(const std::string& folder) {
  return fmt::format(
      "cd '{}' && umask 077 && openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
      "-keyout client.key -subj / -out client.request && openssl x509 -req -in client.request "
      "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out client.pem",
      folder);
}

void run(std::vector<std::string> command) {
  Process process(std::move(command));
  const auto end = process.wait();
  if (!end || !end->ok()) throw std::runtime_error(process.errors());
}

}  // namespace

std::string EtcdCluster::missing() {
  if (!is_on_path("etcd")) return "there is no etcd here: install the package etcd-server";
  if (!is_on_path("etcdctl")) return "there is no etcdctl here: install the package etcd-client";
  return "";
}

EtcdCluster::EtcdCluster(const Options& options) : options_(options) {
  run({source("script/certificates"), file("certificates"), "member=localhost,127.0.0.1"});
  run({"sh", "-c", nameless_certificate(file("certificates"))});
  for (std::size_t index = 0; index < options_.members; ++index) members_.emplace_back();
  for (std::size_t index = 0; index < options_.members; ++index) start(index);
  for (std::size_t index = 0; index < options_.members; ++index) await(index);
  add_users();
}

control::EtcdSettings EtcdCluster::settings() const {
  control::EtcdSettings settings;
  for (std::size_t index = 0; index < members_.size(); ++index) {
    settings.endpoints.push_back(url(index));
  }
  settings.files = {.certificate = file("certificates/client.pem"),
                    .key = file("certificates/client.key"),
                    .ca = file("certificates/ca.pem")};
  settings.user = kUser;
  settings.password = kPassword;
  return settings;
}

void EtcdCluster::kill(std::size_t member) {
  members_[member].process->kill();
  members_[member].process = nullptr;
}

void EtcdCluster::signal(std::size_t member, int number) {
  members_[member].process->signal(number);
}

void EtcdCluster::start(std::size_t member) {
  members_[member].process = std::make_unique<Process>(command(member));
}

void EtcdCluster::await(std::size_t member) {
  for (int time = 0;; ++time) {
    bool has_failed = false;
    const std::string said = run_etcdctl(url(member), {"get", "nothing"}, has_failed);
    if (!has_failed) return;
    if (time == 100 || !members_[member].process->running()) {
      throw std::runtime_error("etcd: " + said + members_[member].process->errors());
    }
    std::this_thread::sleep_for(100ms);
  }
}

void EtcdCluster::compact() {
  const std::string status = etcdctl({"get", "nothing", "-w", "json"});
  const std::string_view name = "\"revision\":";
  const std::size_t at = status.find(name) + name.size();
  std::size_t end = at;
  while (end < status.size() && std::isdigit(static_cast<unsigned char>(status[end])) != 0) ++end;
  (void)etcdctl({"compact", status.substr(at, end - at)});
}

std::string EtcdCluster::etcdctl(std::vector<std::string> arguments) {
  std::string endpoints;
  for (std::size_t index = 0; index < members_.size(); ++index) {
    if (members_[index].process == nullptr) continue;
    endpoints += (endpoints.empty() ? "" : ",") + url(index);
  }
  bool has_failed = false;
  std::string said = run_etcdctl(endpoints, std::move(arguments), has_failed);
  if (has_failed) throw std::runtime_error("etcdctl: " + said);
  return said;
}

std::string EtcdCluster::url(std::size_t member) const {
  return "https://" + members_[member].client_port.address();
}

std::string EtcdCluster::file(const std::string& name) const {
  return folder_.path() / name;
}

std::vector<std::string> EtcdCluster::command(std::size_t member) const {
  const auto peer_url = [this](std::size_t index) {
    return "http://" + members_[index].peer_port.address();
  };
  std::string all;
  for (std::size_t index = 0; index < members_.size(); ++index) {
    all += fmt::format("{}m{}={}", index == 0 ? "" : ",", index, peer_url(index));
  }
  std::vector<std::string> arguments = {"etcd",
                                        fmt::format("--name=m{}", member),
                                        "--data-dir=" + file(fmt::format("m{}", member)),
                                        "--bcrypt-cost=4",
                                        "--listen-client-urls=" + url(member),
                                        "--advertise-client-urls=" + url(member),
                                        "--listen-peer-urls=" + peer_url(member),
                                        "--initial-advertise-peer-urls=" + peer_url(member),
                                        "--initial-cluster=" + all,
                                        "--cert-file=" + file("certificates/member.pem"),
                                        "--key-file=" + file("certificates/member.key"),
                                        "--trusted-ca-file=" + file("certificates/ca.pem"),
                                        "--client-cert-auth",
                                        "--bcrypt-cost=4",
                                        "--logger=zap",
                                        "--log-level=warn"};
  arguments.insert(arguments.end(), options_.more.begin(), options_.more.end());
  return arguments;
}

std::string EtcdCluster::run_etcdctl(const std::string& endpoints,
                                     std::vector<std::string> arguments, bool& has_failed) const {
  std::vector<std::string> all = {"etcdctl",
                                  "--endpoints=" + endpoints,
                                  "--command-timeout=5s",
                                  "--dial-timeout=2s",
                                  "--cacert=" + file("certificates/ca.pem"),
                                  "--cert=" + file("certificates/client.pem"),
                                  "--key=" + file("certificates/client.key")};
  if (has_users_) all.push_back(std::string("--user=") + kRoot);
  all.insert(all.end(), arguments.begin(), arguments.end());
  Process process(all, {{"ETCDCTL_API", "3"}});
  const auto end = process.wait();
  has_failed = !end || !end->ok();
  return process.output() + process.errors();
}

void EtcdCluster::add_users() {
  (void)etcdctl({"role", "add", "vpfs"});
  (void)etcdctl({"role", "grant-permission", "vpfs", "--prefix=true", "readwrite", "/vpfs/"});
  (void)etcdctl({"user", "add", kRoot});
  (void)etcdctl({"user", "grant-role", "root", "root"});
  (void)etcdctl({"user", "add", std::string(kUser) + ":" + kPassword});
  (void)etcdctl({"user", "grant-role", kUser, "vpfs"});
  (void)etcdctl({"auth", "enable"});
  has_users_ = true;
}

}  // namespace vpfs::test
