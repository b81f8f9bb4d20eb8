// What is timed: the loops that do operations.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cache.h"
#include "job.h"

struct Tally {
    uint64_t operations = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t hit_bytes = 0;
    uint64_t errors = 0;
    uint64_t wrong = 0;
    // The words of the values that were read, added up modulo 2^64: docs/job.md.
    uint64_t read_words = 0;
};

// What passed, and what the process was given, in nanoseconds.
struct Clocks {
    uint64_t wall_ns;
    uint64_t cpu_ns;

    static Clocks now();
    Clocks since(const Clocks &start) const { return {wall_ns - start.wall_ns, cpu_ns - start.cpu_ns}; }
};

using Latencies = std::map<Op, std::vector<uint64_t>>;

class Runs {
public:
    Runs(Job &job, Cache &cache) : job_(job), cache_(cache), compute_time_(job.compute_time())
    {
        made_.reserve(job.largest());
    }

    // Does operations.
    void perform(const Operations &operations);
    // Does operations, and times each by itself.
    Latencies perform_each(const Operations &operations);
    // Reads a key; says whether it was there.
    bool get(uint32_t key);
    // Reads every key and compares the whole value; gives how many were there and right.
    uint64_t verify();
    // The same of keys that are not among those that operations write.
    uint64_t verify_new(const Operations &before);

    Tally tally;
    // What was not stored first.
    std::string first_error;

private:
    void perform_one(const Operations &operations, const Operation &operation);
    void set(uint32_t key);
    void load(uint32_t key);
    void compute(uint32_t key);

    Job &job_;
    Cache &cache_;
    std::chrono::milliseconds compute_time_;
    // The value of a key that was not there.
    std::string made_;
    // The sum of the bytes that were made, so that the compiler keeps them.
    volatile uint64_t made_sum_ = 0;
};

// Results of single operations by name; there is at least one.
std::map<std::string, uint64_t> percentiles(std::vector<uint64_t> times);
