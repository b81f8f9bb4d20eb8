#include "value.h"

#include <algorithm>

namespace {

constexpr uint64_t step = 0x9E3779B97F4A7C15;
constexpr uint64_t head_bytes = 24;
constexpr uint64_t word_bytes = 8;

// Makes bits out of bits.
uint64_t mix(uint64_t bits)
{
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
    return bits ^ bits >> 31;
}

// What filler follows from.
uint64_t identity(uint64_t key, uint64_t sequence)
{
    return mix(key) + mix(~sequence);
}

void append(std::string &bytes, uint64_t word)
{
    for (uint64_t byte = 0; byte < word_bytes; ++byte)
        bytes.push_back(static_cast<char>(word >> (8 * byte)));
}

uint64_t word_at(std::string_view bytes, uint64_t start)
{
    uint64_t word = 0;
    for (uint64_t byte = 0; byte < word_bytes; ++byte)
        word |= uint64_t{static_cast<unsigned char>(bytes[start + byte])} << (8 * byte);
    return word;
}

} // namespace

uint64_t Draw::number()
{
    state_ += step;
    return mix(state_);
}

uint64_t Draw::skewed(uint64_t end)
{
    const double share = static_cast<double>(number() >> 11) / static_cast<double>(uint64_t{1} << 53);
    return static_cast<uint64_t>(static_cast<double>(end) * share * share * share);
}

uint64_t Values::mean_bytes() const
{
    return head_bytes + common_ / 8 + longest_ / 512;
}

uint64_t Values::size(uint64_t key, uint64_t sequence) const
{
    const uint64_t bits = mix(identity(key, sequence));
    if (bits % 256 == 0)
        return head_bytes + (bits >> 16) % (longest_ + 1);
    return head_bytes + ((bits >> 16) % (common_ + 1) >> (bits >> 8) % 8);
}

std::string Values::make(uint64_t key, uint64_t sequence) const
{
    const uint64_t bytes = size(key, sequence);
    std::string value;
    value.reserve(bytes + word_bytes);
    for (const uint64_t word : {key, sequence, bytes})
        append(value, word);
    for (uint64_t state = identity(key, sequence) + step; value.size() < bytes; state += step)
        append(value, mix(state));
    value.resize(bytes);
    return value;
}

uint64_t Values::read(uint64_t key, std::string_view value) const
{
    const std::string has = std::to_string(value.size());
    if (value.size() < head_bytes)
        throw WrongValue("it has " + has + " bytes, less than any value");
    const uint64_t its_key = word_at(value, 0);
    const uint64_t sequence = word_at(value, word_bytes);
    const uint64_t bytes = word_at(value, 2 * word_bytes);
    const std::string number = std::to_string(sequence);
    if (its_key != key)
        throw WrongValue("it is the value of key " + std::to_string(its_key));
    const uint64_t due = size(key, sequence);
    if (bytes != due || bytes != value.size())
        throw WrongValue(number + " has " + std::to_string(due) + " bytes, its head says "
                         + std::to_string(bytes) + ", and it has " + has);
    const std::string whole = make(key, sequence);
    const auto differs = std::mismatch(whole.begin(), whole.end(), value.begin()).first;
    if (differs != whole.end())
        throw WrongValue(number + " is not its own from byte "
                         + std::to_string(differs - whole.begin()) + " on");
    return sequence;
}

std::string key_text(uint64_t key)
{
    return "torture:" + std::to_string(key);
}
