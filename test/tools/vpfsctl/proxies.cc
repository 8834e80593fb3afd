#include "test/tools/vpfsctl/proxies.h"

#include <utility>

#include <gtest/gtest.h>

#include "test/support/places.h"

namespace vpfs::test {

Proxies::Proxies(const std::vector<Mood>& moods) {
  std::string list = "# of this test\n";
  for (const Mood mood : moods) {
    const std::size_t number = proxies_.size();
    auto proxy = std::make_unique<Proxy>();
    proxy->mood = mood;
    proxy->owner.on_ask(
        [this, &proxy = *proxy](const control::Envelope& request, const control::Caller&,
                                control::Answer to) { answer(proxy, request, std::move(to)); });
    proxies_.push_back(std::move(proxy));
    if (mood != Mood::absent) start(number);
    list += socket(number) + " s" + std::to_string(number) + "\n";
  }
  file_ = directory_.write("proxies", list);
}

Proxies::~Proxies() {
  for (std::size_t i = 0; i < proxies_.size(); ++i) stop(i);
}

void Proxies::on_ask(Reply reply) {
  const std::lock_guard lock(mutex_);
  reply_ = std::move(reply);
}

void Proxies::set(std::size_t proxy, control::Rule::Action action, Mood mood) {
  const std::lock_guard lock(mutex_);
  proxies_[proxy]->moods[action] = mood;
}

void Proxies::start(std::size_t proxy) {
  control::PortConfig config;
  config.socket = socket(proxy);
  auto port = control::Port::open(config, proxies_[proxy]->owner, clock_);
  ASSERT_TRUE(port) << port.error().message;
  proxies_[proxy]->port = std::move(*port);
  proxies_[proxy]->port->start();
}

void Proxies::stop(std::size_t proxy) {
  if (proxies_[proxy]->port == nullptr) return;
  proxies_[proxy]->port->stop();
  proxies_[proxy]->port.reset();
  proxies_[proxy]->unanswered.clear();
}

std::string Proxies::socket(std::size_t proxy) const {
  return directory_.path() / ("proxy" + std::to_string(proxy) + ".sock");
}

std::vector<control::Envelope> Proxies::asked(std::size_t proxy) const {
  std::vector<control::Envelope> requests;
  for (const FakeOwner::Asked& each : proxies_[proxy]->owner.asked()) {
    requests.push_back(each.request);
  }
  return requests;
}

void Proxies::answer(Proxy& proxy, const control::Envelope& request, control::Answer to) {
  const std::lock_guard lock(mutex_);
  const auto mood = proxy.moods.find(request.rule().action());
  switch (request.has_rule() && mood != proxy.moods.end() ? mood->second : proxy.mood) {
    case Mood::absent:
    case Mood::silent:
      proxy.unanswered.push_back(std::move(to));
      return;
    case Mood::refuses: {
      control::Error error;
      error.set_code(control::Error::INVALID);
      error.set_place("rate");
      error.set_text("needs a unit, such as 500MiB/s");
      to(std::move(error));
      return;
    }
    case Mood::obeys:
      break;
  }
  control::Envelope reply;
  reply.mutable_ack()->set_text("did it");
  to(reply_ ? reply_(request) : reply);
}

Outcome vpfsctl(std::vector<std::string> arguments,
                const std::vector<std::pair<std::string, std::string>>& environment) {
  arguments.insert(arguments.begin(), program("vpfsctl"));
  return outcome_of(std::move(arguments), environment);
}

}  // namespace vpfs::test
