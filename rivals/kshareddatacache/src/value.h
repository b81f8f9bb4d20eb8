// Keys and values of a torture (docs/torture.md): a reader of a value knows whether it is whole.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

// A value that was read and is not one of its key, and why.
struct WrongValue : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Random numbers that follow from a seed: SplitMix64.
class Draw {
public:
    explicit Draw(uint64_t seed)
        : state_(seed)
    {
    }

    uint64_t number();
    // A number below `end`.
    uint64_t below(uint64_t end) { return number() % end; }
    // A number below `end`, small ones more often.
    uint64_t skewed(uint64_t end);

private:
    uint64_t state_;
};

// The values of a torture, by the bounds of their lengths.
class Values {
public:
    Values(uint64_t common, uint64_t longest)
        : common_(common)
        , longest_(longest)
    {
    }

    // About the mean of the lengths.
    uint64_t mean_bytes() const;
    // The value of a key with this sequence number.
    std::string make(uint64_t key, uint64_t sequence) const;
    // The sequence number of a value that was read under a key. Throws `WrongValue`.
    uint64_t read(uint64_t key, std::string_view value) const;

private:
    uint64_t size(uint64_t key, uint64_t sequence) const;

    uint64_t common_;
    uint64_t longest_;
};

// A key as the cache has it.
std::string key_text(uint64_t key);
