#include "tools/load/process.h"

#include <algorithm>
#include <utility>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/log/log.h"
#include "base/result.h"
#include "tools/load/all_of.h"
#include "tools/load/block_pattern.h"
#include "tools/load/text_hash.h"

namespace vpfs::load {
namespace {

constexpr std::uint64_t kFillers = 4;
constexpr Duration kAfterError = std::chrono::milliseconds(10);
// Whoever waits for its time looks that often whether the run has ended.
constexpr Duration kLongestPause = std::chrono::milliseconds(100);

net::Task<> pause(Duration duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor, duration);
  (void)co_await timer.async_wait(net::kUseTask);
}

}  // namespace

Process::Process(const Context& context, std::uint64_t number, Mount& mount, Meter& meter)
    : settings_(context.settings),
      application_(context.application),
      filler_(context.filler),
      clock_(context.clock),
      mount_(mount),
      meter_(meter),
      schedule_(application_, context.end),
      places_(application_.file_size.count / application_.size.count, application_.pattern,
              settings_.seed ^ hash_of(fmt::format("{}/{}", application_.name, number)),
              settings_.verify),
      number_(number),
      left_(application_.amount.count == 0 ? ~std::uint64_t{0}
                                           : application_.amount.count / application_.size.count),
      name_(fmt::format("{}.{}", application_.name, number)),
      file_id_(hash_of(settings_.directory + "/" + name_)) {}

void Process::failed(const Error& error) {
  meter_.failed();
  if (std::exchange(reported_, true)) return;
  spdlog::error("{}/{}: {} (further errors are only counted)", settings_.directory, name_,
                error.message);
}

net::Task<Result<void>> Process::prepare() {
  Result<void> mounted = co_await mount_.connect();
  if (!mounted) co_return mounted;
  Result<std::unique_ptr<RemoteFile>> made =
      co_await mount_.make_file(name_, number_, application_);
  VPFS_CO_TRY(made);
  file_ = std::move(*made);
  if (application_.read_percent == 0) co_return Result<void>();
  const auto filler = [this](std::uint64_t first) { return fill(first, kFillers); };
  co_await all_of(kFillers, filler);
  if (fill_error_) co_return std::unexpected(std::move(*fill_error_));
  co_return Result<void>();
}

net::Task<> Process::fill(std::uint64_t first_place, std::uint64_t step) {
  // Small places are filled many at once, but one by one when verifying.
  const std::uint64_t size = application_.size.count;
  const std::uint64_t together = settings_.verify ? 1 : std::max<std::uint64_t>(1, kMiB / size);
  std::vector<std::byte> buffer;
  for (std::uint64_t place = first_place * together; place < places_.count();
       place += step * together) {
    Result<void> good;
    if (settings_.verify) {
      good = co_await write(place, buffer);
    } else {
      const std::uint64_t bytes = std::min(together, places_.count() - place) * size;
      good = co_await file_->write(place * size, filler_.part(static_cast<std::size_t>(bytes)));
    }
    if (!good) {
      fill_error_ = std::move(good.error());
      co_return;
    }
  }
}

net::Task<> Process::run(TimePoint origin) {
  const auto worker = [this, origin](std::uint64_t) { return work(origin); };
  co_await all_of(application_.outstanding, worker);
}

net::Task<> Process::work(TimePoint origin) {
  std::vector<std::byte> buffer;
  for (;;) {
    const Duration now = clock_.now() - origin;
    const std::optional<Duration> when = schedule_.next(now);
    if (!when || left_ == 0) co_return;
    if (*when > now) {
      co_await pause(std::min(*when - now, kLongestPause));
    } else {
      --left_;
      co_await one_request(origin, buffer);
    }
  }
}

net::Task<> Process::one_request(TimePoint origin, std::vector<std::byte>& buffer) {
  const bool is_read = places_.chance(application_.read_percent);
  const std::uint64_t place = places_.take();
  const std::uint64_t generation = settings_.verify ? places_.generation(place) : 0;
  const TimePoint begin = clock_.now();
  // Named before the conditional: each branch awaits a coroutine of its own.
  Result<void> good;
  if (is_read) {
    good = co_await read(place, buffer);
  } else {
    good = co_await write(place, buffer);
  }
  const TimePoint end = clock_.now();
  if (good) {
    meter_.completed(end - origin, end - begin, application_.size.count);
    if (is_read && generation > 0) verify(place, buffer, generation);
  } else {
    failed(good.error());
  }
  places_.give_back(place);
  const Duration rest = good ? application_.think : kAfterError;
  if (rest > Duration::zero()) co_await pause(rest);
}

net::Task<Result<void>> Process::read(std::uint64_t place, std::vector<std::byte>& buffer) {
  const std::uint64_t size = application_.size.count;
  Result<std::uint64_t> got;
  if (settings_.verify) {
    buffer.resize(static_cast<std::size_t>(size));
    got = co_await file_->read(place * size, buffer);
  } else {
    got = co_await file_->discard(place * size, size);
  }
  VPFS_CO_TRY(got);
  if (*got != size) {
    co_return fail(fmt::format("a read of {} bytes at {} returned {}", size, place * size, *got));
  }
  co_return Result<void>();
}

net::Task<Result<void>> Process::write(std::uint64_t place, std::vector<std::byte>& buffer) {
  const auto size = static_cast<std::size_t>(application_.size.count);
  const std::uint64_t offset = place * size;
  if (!settings_.verify) {
    if (size <= filler_.memory().size()) {
      co_return co_await file_->write(offset, filler_.memory().first(size));
    }
    co_return co_await file_->write(offset, filler_.part(size));
  }
  buffer.resize(size);
  const std::uint64_t block = block_size(size);
  for (std::size_t at = 0; at < size; at += block) {
    fill_block(
        std::span(buffer).subspan(at, block),
        {.file = file_id_, .offset = offset + at, .generation = places_.next_generation(place)});
  }
  Result<void> good = co_await file_->write(offset, std::span<const std::byte>(buffer));
  if (good) {
    places_.written(place);
  } else {
    places_.lost_track_of(place);
  }
  co_return good;
}

void Process::verify(std::uint64_t place, std::span<const std::byte> data,
                     std::uint64_t generation) {
  const std::uint64_t block = block_size(data.size());
  const std::uint64_t offset = place * application_.size.count;
  std::uint64_t failures = 0;
  for (std::size_t at = 0; at < data.size(); at += block) {
    const BlockIdentity expected{.file = file_id_, .offset = offset + at, .generation = generation};
    if (const auto damage = find_damage(data.subspan(at, block), expected)) {
      ++failures;
      // Each place counts, however many there are.
      log_answer(spdlog::level::err, fmt::format("wrong data in {}/{} at offset {}: {}",
                                                 settings_.directory, name_, offset + at, *damage));
    }
  }
  meter_.verified(data.size() / block, failures);
}

net::Task<> Process::finish() {
  if (settings_.verify) {
    const auto checker = [this](std::uint64_t first) { return check(first, kFillers); };
    co_await all_of(kFillers, checker);
  }
  if (settings_.keep_files) co_return;
  const Result<void> removed = co_await file_->remove();
  if (!removed) failed(removed.error());
}

net::Task<> Process::check(std::uint64_t first_place, std::uint64_t step) {
  std::vector<std::byte> buffer;
  for (std::uint64_t place = first_place; place < places_.count(); place += step) {
    if (places_.generation(place) == 0) continue;
    const Result<void> good = co_await read(place, buffer);
    if (good) {
      verify(place, buffer, places_.generation(place));
    } else {
      failed(good.error());
    }
  }
}

}  // namespace vpfs::load
