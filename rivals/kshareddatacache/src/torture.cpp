#include "torture.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>

#include <poll.h>
#include <unistd.h>

#include "cache.h"
#include "job.h"

namespace {

using Clock = std::chrono::steady_clock;

uint64_t nanos_since(Clock::time_point begun)
{
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun);
    return static_cast<uint64_t>(passed.count());
}

uint64_t number_of(const std::string &text)
{
    const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
    if (text.empty() || text.size() > 20 || !is_number)
        throw JobError("'" + text + "' is not a number");
    return std::stoull(text);
}

// Writes lines to the laboratory, by one system call.
void say(const std::string &lines)
{
    for (size_t said = 0; said < lines.size();) {
        const ssize_t now = write(STDOUT_FILENO, lines.data() + said, lines.size() - said);
        if (now < 0)
            throw JobError("nobody listens");
        said += static_cast<size_t>(now);
    }
}

// Whether standard input has ended; nothing comes there.
bool is_over()
{
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    char bytes[64];
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, bytes, sizeof bytes) <= 0;
}

QString name_of(uint64_t key)
{
    return QString::fromLatin1(key_text(key).c_str());
}

// Writes the keys that are its own, and says each operation before it and after it.
class Writer {
public:
    Writer(const Orders &orders, Cache &cache)
        : orders_(orders)
        , values_(orders.values())
        , cache_(cache)
        , writers_(std::max<uint64_t>(1, orders.number("writers")))
    {
    }

    void run()
    {
        audit();
        const uint64_t own_keys = orders_.number("keys") / writers_;
        // There is no call to delete: those operations write.
        const uint64_t deletes = orders_.number("delete");
        const uint64_t fetches = deletes + orders_.number("fetch");
        Draw draw(orders_.seed);
        uint64_t sequence = orders_.number("first");
        while (!is_over()) {
            const uint64_t key = own(draw.skewed(own_keys));
            const uint64_t what = draw.below(100);
            const bool is_fetch = what >= deletes && what < fetches;
            if (!is_fetch || is_missing(key))
                set(key, sequence++);
        }
        say(said_ + "end\n");
    }

private:
    uint64_t own(uint64_t rank) const { return rank * writers_ + orders_.number("number"); }

    // Says what is there of the first keys.
    void audit()
    {
        std::string said;
        for (uint64_t rank = 0; rank < orders_.number("audit"); ++rank) {
            const uint64_t key = own(rank);
            if (!cache_.find(name_of(key)))
                continue;
            try {
                said += "found " + std::to_string(key) + ' '
                    + std::to_string(values_.read(key, cache_.value())) + '\n';
            } catch (const WrongValue &wrong) {
                said += "wrong " + std::to_string(key) + ' ' + wrong.what() + '\n';
            }
        }
        say(said + "ready\n");
    }

    // Says what was done last and what comes now.
    void announce(const std::string &what)
    {
        say(said_ + what + '\n');
        said_.clear();
    }

    void set(uint64_t key, uint64_t sequence)
    {
        const QString name = name_of(key);
        const std::string value = values_.make(key, sequence);
        announce("set " + std::to_string(key) + ' ' + std::to_string(sequence));
        const auto begun = Clock::now();
        const bool is_stored = cache_.insert(name, value);
        const std::string taken = std::to_string(nanos_since(begun));
        if (is_stored)
            said_ = "done " + taken + '\n';
        else
            said_ = "failed " + taken + " insert of " + std::to_string(value.size())
                + " bytes returned false\n";
    }

    // Reads a key; whether it is not there.
    bool is_missing(uint64_t key)
    {
        const QString name = name_of(key);
        announce("get " + std::to_string(key));
        const auto begun = Clock::now();
        const bool is_found = cache_.find(name);
        const std::string taken = std::to_string(nanos_since(begun));
        if (!is_found) {
            said_ = "miss " + taken + '\n';
            return true;
        }
        try {
            said_ = "hit " + std::to_string(values_.read(key, cache_.value())) + ' ' + taken + '\n';
        } catch (const WrongValue &wrong) {
            said_ = "wrong " + std::to_string(key) + ' ' + wrong.what() + '\n';
        }
        return false;
    }

    const Orders &orders_;
    Values values_;
    Cache &cache_;
    uint64_t writers_;
    // What is to be said together with what comes next.
    std::string said_;
};

// Reads a mix of keys; values have to be whole, and time must not run backwards.
class Reader {
public:
    Reader(const Orders &orders, Cache &cache)
        : values_(orders.values())
        , cache_(cache)
        , draw_(orders.seed)
        , newest_(orders.number("keys"))
    {
    }

    void run()
    {
        say("ready\n");
        for (std::string order; std::getline(std::cin, order);) {
            if (order.rfind("read ", 0) != 0)
                throw JobError("'" + order + "' is no order");
            round(number_of(order.substr(5)));
        }
        say("end\n");
    }

private:
    void round(uint64_t reads)
    {
        std::ostringstream said;
        uint64_t hits = 0;
        uint64_t longest = 0;
        for (uint64_t at = 0; at < reads; ++at) {
            const uint64_t key = draw_.skewed(newest_.size());
            const QString name = name_of(key);
            const auto begun = Clock::now();
            const bool is_found = cache_.find(name);
            longest = std::max(longest, nanos_since(begun));
            if (!is_found)
                continue;
            ++hits;
            try {
                judge(key);
            } catch (const WrongValue &wrong) {
                said << "wrong " << key << ' ' << wrong.what() << '\n';
            }
        }
        said << "round " << reads << ' ' << hits << " 0 0 " << longest << '\n';
        say(said.str());
    }

    void judge(uint64_t key)
    {
        const uint64_t sequence = values_.read(key, cache_.value());
        uint64_t &newest = newest_[key];
        if (sequence < newest)
            throw WrongValue(std::to_string(sequence) + " after " + std::to_string(newest)
                             + " was read: it was overwritten");
        newest = sequence;
    }

    Values values_;
    Cache &cache_;
    Draw draw_;
    std::vector<uint64_t> newest_;
};

} // namespace

Orders::Orders(const std::vector<std::string> &arguments)
{
    if (arguments.size() < 4)
        throw JobError("run-torture takes ROLE PATH SEED SUBJECT NAME=NUMBER...");
    role = arguments[0];
    path = arguments[1];
    seed = number_of(arguments[2]);
    subject = arguments[3];
    if (role != "writer" && role != "reader" && role != "computer" && role != "client")
        throw JobError("unknown role '" + role + "' (known: writer, reader, computer, client)");
    for (size_t at = 4; at < arguments.size(); ++at) {
        const size_t equals = arguments[at].find('=');
        if (equals == std::string::npos)
            throw JobError("'" + arguments[at] + "' is not NAME=NUMBER");
        numbers_[arguments[at].substr(0, equals)] = number_of(arguments[at].substr(equals + 1));
    }
}

uint64_t Orders::number(const std::string &name) const
{
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? 0 : found->second;
}

void torture(const Orders &orders, uint64_t room, const std::string &policy)
{
    if (chdir(orders.path.c_str()) != 0)
        throw JobError(orders.path + " cannot be the working directory");
    const uint64_t key_bytes = key_text(orders.number("keys")).size();
    const auto begun = Clock::now();
    Cache cache({orders.number("capacity") * room, false, policy},
                orders.values().mean_bytes() + key_bytes);
    say("opened " + std::to_string(nanos_since(begun)) + '\n');
    if (orders.role == "writer")
        Writer(orders, cache).run();
    else if (orders.role == "reader")
        Reader(orders, cache).run();
    else if (orders.role == "client")
        // It has no call that removes an entry.
        say("unsupported\n");
    else
        say("ready\nasking\nunsupported\nend\n");
}
