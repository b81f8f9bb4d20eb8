// The processes of a torture (docs/torture.md): they write or read, and say each thing that they do.
//
//     PROGRAM run-torture ROLE PATH SEED SUBJECT NAME=NUMBER...
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "value.h"

// What a process is told to do.
class Orders {
public:
    // Of the arguments after `run-torture`. Throws `JobError`.
    explicit Orders(const std::vector<std::string> &arguments);

    // One of the numbers; 0 where it is missing.
    uint64_t number(const std::string &name) const;
    // The values that `common` and `longest` describe.
    Values values() const { return {number("common"), number("longest")}; }

    std::string role;
    std::string path;
    uint64_t seed = 0;
    std::string subject;

private:
    std::map<std::string, uint64_t> numbers_;
};

// Does what is ordered, on the subject with this multiple of the capacity and this policy, until
// standard input ends.
void torture(const Orders &orders, uint64_t room, const std::string &policy);
