#include "job.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

namespace {

constexpr uint64_t known_schema = 3;
constexpr uint64_t value_step = 61;
constexpr uint32_t operand_bits = 28;
constexpr size_t head_bytes = 8;
constexpr uint64_t max_compute_ms = 60000;

// The number of a key as its value has it.
void write_head(char *place, uint32_t key, size_t size)
{
    const uint64_t number = key;
    for (size_t byte = 0; byte < std::min(size, head_bytes); ++byte)
        place[byte] = static_cast<char>(number >> (8 * byte));
}

} // namespace

bool Operations::has(Op op) const
{
    const auto is = [op](const Operation &one) { return one.op == op; };
    return std::any_of(list.begin(), list.end(), is);
}

std::vector<bool> Operations::written(uint32_t keys) const
{
    std::vector<bool> written(keys);
    for (const Operation &one : list) {
        if (one.op == Op::set || one.op == Op::getset || one.op == Op::expire || one.op == Op::compute)
            written[one.operand] = true;
    }
    return written;
}

Job::Job(const std::string &directory)
    : directory_(directory)
{
    std::istringstream lines(bytes("job.txt"));
    for (std::string line; std::getline(lines, line);) {
        const size_t blank = line.find(' ');
        if (blank != std::string::npos)
            settings_[line.substr(0, blank)] = line.substr(blank + 1);
    }
    if (number("schema") > known_schema)
        throw JobError("the job has schema " + text("schema") + ", known is "
                       + std::to_string(known_schema));
    keys_ = bytes("keys.bin");
    ends_ = words("keys.idx");
    sizes_ = words("sizes.bin");
    pool_ = bytes("pool.bin");
    span_ = number("pool_span");
    if (ends_.size() != number("keys") + 1 || sizes_.size() != number("keys") || span_ == 0)
        throw JobError(directory + ": " + text("keys") + " keys have " + std::to_string(ends_.size())
                       + " places and " + std::to_string(sizes_.size()) + " sizes");
    if (!std::is_sorted(ends_.begin(), ends_.end()) || ends_.back() > keys_.size())
        throw JobError(directory + ": a key has no bytes");
    if (span_ + largest() + head_bytes > pool_.size())
        throw JobError(directory + ": a value has no bytes");
    unstamped_ = pool_.substr(0, head_bytes);
}

uint64_t Job::number(const std::string &name) const
{
    const std::string found = text(name);
    const bool is_number = found.find_first_not_of("0123456789") == std::string::npos;
    if (found.empty() || found.size() > 19 || !is_number)
        throw JobError("job.txt has no number '" + name + "'");
    return std::stoull(found);
}

uint64_t Job::number(const std::string &name, uint64_t otherwise) const
{
    return settings_.count(name) ? number(name) : otherwise;
}

std::string Job::text(const std::string &name) const
{
    const auto found = settings_.find(name);
    return found == settings_.end() ? std::string() : found->second;
}

std::string_view Job::key(uint32_t key) const
{
    return std::string_view(keys_).substr(ends_[key], ends_[key + 1] - ends_[key]);
}

uint32_t Job::largest() const
{
    const auto found = std::max_element(sizes_.begin(), sizes_.end());
    return found == sizes_.end() ? 0 : *found;
}

std::chrono::milliseconds Job::compute_time() const
{
    const uint64_t compute_ms = number("compute_ms", 0);
    if (compute_ms > max_compute_ms)
        throw JobError("compute_ms is " + text("compute_ms") + "; it is at most "
                       + std::to_string(max_compute_ms));
    return std::chrono::milliseconds(compute_ms);
}

std::string_view Job::value(uint32_t key)
{
    std::memcpy(&pool_[stamped_], unstamped_.data(), head_bytes);
    stamped_ = key * value_step % span_;
    std::memcpy(&unstamped_[0], &pool_[stamped_], head_bytes);
    write_head(&pool_[stamped_], key, sizes_[key]);
    return std::string_view(pool_).substr(stamped_, sizes_[key]);
}

bool Job::begins(uint32_t key, std::string_view value) const
{
    char head[head_bytes];
    write_head(head, key, head_bytes);
    return value.size() == sizes_[key]
        && std::memcmp(value.data(), head, std::min(value.size(), head_bytes)) == 0;
}

Operations Job::operations(const std::string &name) const
{
    const std::vector<uint32_t> code = words(name);
    Operations operations;
    for (size_t at = 0; at < code.size();) {
        const uint32_t op = code[at] >> operand_bits;
        uint32_t operand = code[at] & ((1u << operand_bits) - 1);
        ++at;
        if (op > static_cast<uint32_t>(Op::compute))
            throw JobError(name + ": unknown operation " + std::to_string(op));
        const Op known = static_cast<Op>(op);
        const bool is_whole = known == Op::fresh || known == Op::flush || known == Op::wait
            || known == Op::clear;
        uint32_t count = is_whole ? 0 : 1;
        bool is_sound = is_whole || operand < keys();
        if (known == Op::many) {
            count = operand;
            if (count > code.size() - at)
                throw JobError(name + ": it ends before its operations do");
            operand = static_cast<uint32_t>(operations.many.size());
            operations.many.insert(operations.many.end(), &code[at], &code[at] + count);
            const auto is_known = [this](uint32_t key) { return key < keys(); };
            is_sound = std::all_of(&code[at], &code[at] + count, is_known);
            at += count;
        }
        if (!is_sound)
            throw JobError(name + ": a key that is none of the " + std::to_string(keys()));
        operations.list.push_back({known, operand, count});
    }
    return operations;
}

std::string Job::bytes(const std::string &name) const
{
    const std::string path = directory_ + "/" + name;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    // Reading an empty file sets the failure bit, which is not an error here.
    if (!file || (file.peek() != std::ifstream::traits_type::eof() && !(content << file.rdbuf())))
        throw JobError(path + " cannot be read");
    return content.str();
}

std::vector<uint32_t> Job::words(const std::string &name) const
{
    const std::string content = bytes(name);
    std::vector<uint32_t> numbers(content.size() / 4);
    for (size_t at = 0; at < 4 * numbers.size(); ++at) {
        const uint32_t byte = static_cast<unsigned char>(content[at]);
        numbers[at / 4] |= byte << (8 * (at % 4));
    }
    return numbers;
}
