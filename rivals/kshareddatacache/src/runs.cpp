#include "runs.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include <time.h>

namespace {

uint64_t read_clock(clockid_t clock)
{
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

// The sum of all bytes, eight at a time.
uint64_t words_of(std::string_view value)
{
    uint64_t sum = 0;
    size_t at = 0;
    for (; at + 8 <= value.size(); at += 8) {
        uint64_t word;
        std::memcpy(&word, value.data() + at, 8);
        sum += word;
    }
    for (; at < value.size(); ++at)
        sum += static_cast<unsigned char>(value[at]);
    return sum;
}

} // namespace

Clocks Clocks::now()
{
    return {read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

void Runs::perform(const Operations &operations)
{
    for (const Operation &operation : operations.list)
        perform_one(operations, operation);
}

Latencies Runs::perform_each(const Operations &operations)
{
    Latencies latencies;
    for (const Operation &operation : operations.list) {
        std::vector<uint64_t> &times = latencies[operation.op];
        const uint64_t start = read_clock(CLOCK_MONOTONIC);
        perform_one(operations, operation);
        times.push_back(read_clock(CLOCK_MONOTONIC) - start);
    }
    return latencies;
}

inline void Runs::perform_one(const Operations &operations, const Operation &operation)
{
    tally.operations += operation.count;
    switch (operation.op) {
    case Op::get:
        get(operation.operand);
        break;
    case Op::set:
        set(operation.operand);
        break;
    case Op::many:
        // It has no call for several keys.
        for (uint32_t at = 0; at < operation.count; ++at)
            get(operations.many[operation.operand + at]);
        break;
    case Op::getset:
        if (!get(operation.operand))
            set(operation.operand);
        break;
    case Op::fresh:
        cache_.fresh();
        break;
    case Op::flush:
        cache_.flush();
        break;
    case Op::wait:
        std::this_thread::sleep_for(std::chrono::milliseconds(operation.operand));
        break;
    case Op::clear:
        cache_.clear();
        break;
    case Op::load:
        load(operation.operand);
        break;
    case Op::compute:
        compute(operation.operand);
        break;
    case Op::expire:
        throw JobError("it knows no time to live for EXPIRE");
    case Op::del:
        throw JobError("it has no call to DELETE an entry");
    }
}

bool Runs::get(uint32_t key)
{
    if (!cache_.get(key)) {
        ++tally.misses;
        return false;
    }
    const std::string_view value = cache_.value();
    ++tally.hits;
    tally.hit_bytes += value.size();
    tally.wrong += !job_.begins(key, value);
    tally.read_words += words_of(value);
    return true;
}

void Runs::set(uint32_t key)
{
    if (cache_.set(key, job_.value(key)))
        return;
    if (tally.errors++ == 0)
        first_error = "insert of " + std::to_string(job_.key(key).size()) + " and "
            + std::to_string(job_.size(key)) + " bytes of key and value returned false";
}

void Runs::load(uint32_t key)
{
    if (get(key))
        return;
    made_ = job_.value(key);
    made_sum_ = made_sum_ + words_of(made_);
}

// It has no call for that: each process that misses computes.
void Runs::compute(uint32_t key)
{
    if (get(key))
        return;
    std::this_thread::sleep_for(compute_time_);
    set(key);
}

uint64_t Runs::verify()
{
    uint64_t right = 0;
    for (uint32_t key = 0; key < job_.keys(); ++key) {
        if (!cache_.get(key))
            continue;
        if (cache_.value() == job_.value(key))
            ++right;
        else
            ++tally.wrong;
    }
    return right;
}

uint64_t Runs::verify_new(const Operations &before)
{
    const std::vector<bool> written = before.written(job_.keys());
    uint64_t right = 0;
    for (uint32_t key = 0; key < job_.keys(); ++key)
        right += !written[key] && cache_.get(key) && cache_.value() == job_.value(key);
    return right;
}

std::map<std::string, uint64_t> percentiles(std::vector<uint64_t> times)
{
    std::sort(times.begin(), times.end());
    const auto at = [&times](double share) {
        const auto place = static_cast<size_t>(static_cast<double>(times.size()) * share);
        return times[std::min(place, times.size() - 1)];
    };
    const uint64_t sum = std::accumulate(times.begin(), times.end(), uint64_t{0});
    return {{"count", times.size()}, {"p50", at(.5)},  {"p90", at(.9)},      {"p99", at(.99)},
            {"p999", at(.999)},      {"max", times.back()}, {"mean", sum / times.size()}};
}
