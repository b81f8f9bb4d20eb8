// KSharedDataCache as a subject of Haypile's laboratory: a runner (docs/job.md).
//
//     PROGRAM list-subjects
//     PROGRAM run-job DIRECTORY kshareddatacache [--process NUMBER]
//     PROGRAM run-torture ROLE PATH SEED kshareddatacache NAME=NUMBER...

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include <kcoreaddons_version.h>

#include "cache.h"
#include "job.h"
#include "runs.h"
#include "torture.h"

namespace {

const std::string subject_name = "kshareddatacache";
const std::string usage = "kshareddatacache[:policy=...,room=N]";

// Writes a line to the laboratory.
void say(const std::string &line)
{
    std::cout << line << '\n' << std::flush;
}

// Waits for a line; whether it was the one that is due.
bool is_told(const std::string &due)
{
    std::string line;
    return std::getline(std::cin, line) && line == due;
}

struct Memory {
    uint64_t resident_bytes = 0;
    uint64_t peak_bytes = 0;

    static Memory now()
    {
        Memory memory;
        std::ifstream status("/proc/self/status");
        for (std::string line; std::getline(status, line);) {
            std::istringstream fields(line);
            std::string name;
            uint64_t kib = 0;
            if (fields >> name >> kib && name == "VmRSS:")
                memory.resident_bytes = kib * 1024;
            else if (name == "VmHWM:")
                memory.peak_bytes = kib * 1024;
        }
        return memory;
    }
};

uint64_t beyond(uint64_t bytes, uint64_t before)
{
    return bytes > before ? bytes - before : 0;
}

// What may stand behind the subject's name.
struct Options {
    std::string policy;
    uint64_t room = 1;

    static Options of(const std::string &text)
    {
        const size_t colon = text.find(':');
        if (text.substr(0, colon) != subject_name)
            throw JobError("unknown subject '" + text + "' (known: " + usage + ")");
        Options options;
        std::istringstream rest(colon == std::string::npos ? "" : text.substr(colon + 1));
        for (std::string option; std::getline(rest, option, ',');) {
            if (option.rfind("policy=", 0) == 0)
                options.policy = option.substr(7);
            else if (option.rfind("room=", 0) == 0)
                options.room = std::strtoul(option.c_str() + 5, nullptr, 10);
            else
                options.room = 0;
            if (options.room == 0 || options.room > 9999)
                throw JobError("invalid subject '" + text + "'; written as " + usage);
        }
        return options;
    }
};

class Session {
public:
    Session(const std::string &directory, const std::string &subject, uint64_t process)
        : options_(Options::of(subject))
        , job_(directory)
        , process_(process)
        , processes_(job_.number("processes", 1))
        , is_open_timed_(job_.text("timing") == "open")
    {
        if (job_.number("threads") != 1)
            throw JobError(subject_name + " is measured on one thread, not on " + job_.text("threads")
                           + "; ask for --threads 1");
        warm_up_ = job_.number("warm_up", 0);
        if (warm_up_ != 0 && is_open_timed_)
            throw JobError("a job with the timing open has no warm_up");
        if (process_ >= processes_)
            throw JobError("there is no process " + std::to_string(process_) + "; the job is for "
                           + std::to_string(processes_) + ", from 0");
        prepare_ = job_.operations("prepare.ops");
        timed_ = job_.operations("timed." + std::to_string(process_) + ".ops");
        if (prepare_.has(Op::del) || timed_.has(Op::del))
            throw JobError(subject_name + " has no call to DELETE an entry");
        if (prepare_.has(Op::expire) || timed_.has(Op::expire))
            throw JobError(subject_name + " cannot do EXPIRE: it knows no time to live");
        before_ = Memory::now();
    }

    // Does the job, and says what came of it.
    void run()
    {
        if (!(is_open_timed_ ? open_and_read() : prepare_and_perform()))
            return;
        const Tally timed = runs_->tally;
        const Memory after = Memory::now();
        say("timed");
        if (!is_told("verify"))
            return;
        result("operations", timed.operations);
        result("hits", timed.hits);
        result("misses", timed.misses);
        result("hit_bytes", timed.hit_bytes);
        result("read_words", timed.read_words);
        result("memory_bytes", beyond(after.resident_bytes, before_.resident_bytes));
        result("memory_peak_bytes", beyond(after.peak_bytes, before_.resident_bytes));
        if (process_ == 0) {
            result("charged_bytes", cache_->charged_bytes());
            if (job_.number("verify_after")) {
                result("verified_after", runs_->verify());
                result("verified_new", runs_->verify_new(prepare_));
            }
        }
        if (job_.text("timing") == "each") {
            for (const auto &[op, times] : runs_->perform_each(timed_))
                for (const auto &[what, number] : percentiles(times))
                    result("latency_" + (op_names[static_cast<size_t>(op)] + ("_" + what)), number);
        }
        result("errors", errors_before_ + runs_->tally.errors);
        result("wrong", wrong_before_ + runs_->tally.wrong);
        // What is to be found later stays; anything else is removed.
        const bool flushes = prepare_.has(Op::flush) || timed_.has(Op::flush);
        cache_->close(is_open_timed_ || processes_ > 1 || flushes);
        if (!runs_->first_error.empty())
            results_ << "first_error " << runs_->first_error << '\n';
        results_ << "version " << KCOREADDONS_VERSION_STRING << "\nlanguage c++\n";
        say(results_.str() + "end");
    }

private:
    void open(bool is_new)
    {
        const uint64_t capacity_bytes = job_.number("capacity_bytes") * options_.room;
        cache_.emplace(job_, Room{capacity_bytes, is_new, options_.policy});
        runs_.emplace(job_, *cache_);
    }

    // Does the timed operations untimed, on a cache of its own in a folder of its own.
    void warm_up()
    {
        const auto before = std::filesystem::current_path();
        const auto folder = before / ("warm-up." + std::to_string(process_));
        std::filesystem::remove_all(folder);
        std::filesystem::create_directory(folder);
        std::filesystem::current_path(folder);
        open(true);
        runs_->perform(prepare_);
        for (uint64_t execution = 0; execution < warm_up_; ++execution)
            runs_->perform(timed_);
        errors_before_ = runs_->tally.errors;
        wrong_before_ = runs_->tally.wrong;
        cache_->close(false);
        std::filesystem::current_path(before);
        std::filesystem::remove_all(folder);
        result("warm_up", warm_up_);
    }

    bool prepare_and_perform()
    {
        if (warm_up_ != 0)
            warm_up();
        open(process_ == 0);
        if (process_ == 0) {
            runs_->perform(prepare_);
            if (job_.number("verify_before"))
                result("verified_before", runs_->verify());
        }
        errors_before_ += runs_->tally.errors;
        wrong_before_ += runs_->tally.wrong;
        runs_->tally = Tally();
        say("ready");
        if (!is_told("go"))
            return false;
        const uint64_t executions = job_.number("executions");
        const Clocks start = Clocks::now();
        for (uint64_t execution = 0; execution < executions; ++execution)
            runs_->perform(timed_);
        result("", Clocks::now().since(start));
        return true;
    }

    // The timed part begins with the opening: what an earlier process has left is read.
    bool open_and_read()
    {
        say("ready");
        if (!is_told("go"))
            return false;
        const Clocks start = Clocks::now();
        open(false);
        result("open_", Clocks::now().since(start));
        std::optional<Clocks> first_hit;
        for (const Operation &operation : timed_.list) {
            ++runs_->tally.operations;
            if (runs_->get(operation.operand) && !first_hit)
                first_hit = Clocks::now();
        }
        result("", Clocks::now().since(start));
        if (first_hit)
            result("first_hit_", first_hit->since(start));
        return true;
    }

    void result(const std::string &name, uint64_t number)
    {
        results_ << name << ' ' << number << '\n';
    }

    void result(const std::string &name, const Clocks &taken)
    {
        result(name + "wall_ns", taken.wall_ns);
        result(name + "cpu_ns", taken.cpu_ns);
    }

    Options options_;
    Job job_;
    uint64_t process_;
    uint64_t processes_;
    bool is_open_timed_;
    uint64_t warm_up_ = 0;
    Operations prepare_;
    Operations timed_;
    Memory before_;
    std::optional<Cache> cache_;
    std::optional<Runs> runs_;
    uint64_t errors_before_ = 0;
    uint64_t wrong_before_ = 0;
    std::ostringstream results_;
};

} // namespace

int main(int count, char **values)
{
    const std::vector<std::string> arguments(values + 1, values + count);
    if (arguments == std::vector<std::string>{"list-subjects"}) {
        say(subject_name + '\t' + usage + "\tc++\t" + KCOREADDONS_VERSION_STRING
            + "\tKSharedDataCache of KDE: a mapped file behind one lock");
        return 0;
    }
    const bool has_process = arguments.size() == 5 && arguments[3] == "--process"
        && !arguments[4].empty() && arguments[4].size() < 10
        && arguments[4].find_first_not_of("0123456789") == std::string::npos;
    const std::string verb = arguments.empty() ? "" : arguments[0];
    const bool is_job = verb == "run-job" && (arguments.size() == 3 || has_process);
    if (!is_job && verb != "run-torture") {
        std::cerr << "usage: list-subjects | run-job DIRECTORY " << usage << " [--process NUMBER] | "
                  << "run-torture ROLE PATH SEED SUBJECT NAME=NUMBER...\n";
        return 2;
    }
    try {
        if (is_job) {
            const uint64_t process = has_process ? std::stoull(arguments[4]) : 0;
            Session(arguments[1], arguments[2], process).run();
        } else {
            const Orders orders({arguments.begin() + 1, arguments.end()});
            const Options options = Options::of(orders.subject);
            torture(orders, options.room, options.policy);
        }
    } catch (const std::exception &error) {
        say(std::string("error ") + error.what());
        return 2;
    }
    return 0;
}
