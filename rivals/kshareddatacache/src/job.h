// A job as docs/job.md describes it: keys, values and operations, read from a directory.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

enum class Op : uint32_t {
    get, set, many, del, fresh, getset, flush, wait, clear, load, expire, compute,
};

// How results call the operations.
constexpr const char *op_names[] = {
    "get", "set", "many", "delete", "fresh", "getset", "flush", "wait",
    "clear", "load", "expire", "compute",
};

// A job that cannot be done, and why.
struct JobError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An operation. The keys of `many` are in `Operations::many` from `operand` on, `count` of them.
struct Operation {
    Op op;
    uint32_t operand;
    uint32_t count;
};

struct Operations {
    std::vector<Operation> list;
    std::vector<uint32_t> many;

    // Whether there is such an operation.
    bool has(Op op) const;
    // For each of the keys, whether it is written.
    std::vector<bool> written(uint32_t keys) const;
};

class Job {
public:
    explicit Job(const std::string &directory);

    // A setting that is a number.
    uint64_t number(const std::string &name) const;
    // The same where it may be left out.
    uint64_t number(const std::string &name, uint64_t otherwise) const;
    std::string text(const std::string &name) const;

    uint32_t keys() const { return static_cast<uint32_t>(sizes_.size()); }
    std::string_view key(uint32_t key) const;
    uint32_t size(uint32_t key) const { return sizes_[key]; }
    uint32_t largest() const;
    // How long it takes to compute a value.
    std::chrono::milliseconds compute_time() const;

    // The value of a key, in the pool, where its number is written first. The next call changes it.
    std::string_view value(uint32_t key);
    // Whether the length and the first 8 bytes are those of the value.
    bool begins(uint32_t key, std::string_view value) const;

    Operations operations(const std::string &name) const;

private:
    std::string bytes(const std::string &name) const;
    std::vector<uint32_t> words(const std::string &name) const;

    std::string directory_;
    std::map<std::string, std::string> settings_;
    std::string keys_;
    std::vector<uint32_t> ends_;
    std::vector<uint32_t> sizes_;
    std::string pool_;
    uint64_t span_;
    // Where the value written last has its number, and what was there before.
    uint64_t stamped_ = 0;
    std::string unstamped_;
};
