#include "cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>

#include <fcntl.h>
#include <unistd.h>

namespace {

const char *const name = "kshareddatacache";
const char *const file_name = "kshareddatacache.kcache";

KSharedDataCache::EvictionPolicy policy_of(const std::string &text)
{
    if (text.empty())
        return KSharedDataCache::NoEvictionPreference;
    if (text == "lru")
        return KSharedDataCache::EvictLeastRecentlyUsed;
    if (text == "lfu")
        return KSharedDataCache::EvictLeastOftenUsed;
    if (text == "oldest")
        return KSharedDataCache::EvictOldest;
    throw JobError("unknown policy '" + text + "' (known: lru, lfu, oldest)");
}

// The mean size of a key and its value, which the size of a page is made from.
uint64_t mean_bytes_of(const Job &job)
{
    uint64_t sum = 0;
    for (uint32_t key = 0; key < job.keys(); ++key)
        sum += job.key(key).size() + job.size(key);
    return job.keys() == 0 ? 1 : std::max<uint64_t>(1, sum / job.keys());
}

// Whether the file is mapped. Where it cannot be, the cache goes on in memory of its own, and says
// nothing.
bool is_mapped()
{
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(file_name) != std::string::npos)
            return true;
    return false;
}

} // namespace

Cache::Cache(const Room &room, uint64_t mean_bytes)
    : mean_bytes_(static_cast<unsigned>(mean_bytes))
    , policy_(policy_of(room.policy))
{
    if (room.capacity_bytes > std::numeric_limits<unsigned>::max())
        throw JobError("it takes sizes of up to 4294967295 bytes, not "
                       + std::to_string(room.capacity_bytes));
    capacity_bytes_ = static_cast<unsigned>(room.capacity_bytes);
    // It keeps its files where the user's caches are: for this process, in the working directory.
    char here[4096];
    if (!getcwd(here, sizeof here) || setenv("XDG_CACHE_HOME", here, 1) != 0)
        throw JobError("there is no working directory");
    if (room.is_new)
        fresh();
    else
        open();
}

Cache::Cache(const Job &job, const Room &room)
    : Cache(room, mean_bytes_of(job))
{
    keys_.reserve(job.keys());
    for (uint32_t key = 0; key < job.keys(); ++key) {
        const std::string_view bytes = job.key(key);
        keys_.push_back(QString::fromLatin1(bytes.data(), static_cast<int>(bytes.size())));
    }
}

void Cache::fresh()
{
    cache_.reset();
    KSharedDataCache::deleteCache(name);
    open();
}

void Cache::open()
{
    cache_ = std::make_unique<KSharedDataCache>(name, capacity_bytes_, mean_bytes_);
    cache_->setEvictionPolicy(policy_);
    if (!is_mapped())
        throw JobError("KSharedDataCache uses memory of its own; it could not make or map its file");
}

void Cache::flush() const
{
    // Its mapping is shared: what it wrote is the file's.
    const int file = ::open(file_name, O_RDWR | O_CLOEXEC);
    const bool is_synced = file >= 0 && fsync(file) == 0;
    if (file >= 0)
        ::close(file);
    if (!is_synced)
        throw JobError(std::string(file_name) + " cannot be synced");
}

void Cache::close(bool keeps)
{
    cache_.reset();
    if (!keeps)
        KSharedDataCache::deleteCache(name);
}
