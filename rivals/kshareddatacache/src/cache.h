// KSharedDataCache: what the operations of a job, or of a torture, are on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <QByteArray>
#include <QString>
#include <kshareddatacache.h>

#include "job.h"

// What a cache is opened with.
struct Room {
    uint64_t capacity_bytes;
    // Whether what an earlier process left is thrown away; otherwise it is opened.
    bool is_new;
    // A policy by its name; empty for the default.
    std::string policy;
};

class Cache {
public:
    // For entries of this mean size.
    Cache(const Room &room, uint64_t mean_bytes);
    // The job's keys become the text that a cache of this kind wants, a character for each byte.
    Cache(const Job &job, const Room &room);

    // Whether the key is there; its value is then `value()`.
    bool find(const QString &key) { return cache_->find(key, &found_); }
    // The same of a key of the job.
    bool get(uint32_t key) { return find(keys_[key]); }
    std::string_view value() const
    {
        return {found_.constData(), static_cast<size_t>(found_.size())};
    }
    // Whether it was stored.
    bool insert(const QString &key, std::string_view value)
    {
        // Borrows the bytes: the cache copies them into its file.
        const int size = static_cast<int>(value.size());
        return cache_->insert(key, QByteArray::fromRawData(value.data(), size));
    }
    // The same of a key of the job.
    bool set(uint32_t key, std::string_view value) { return insert(keys_[key], value); }
    // Replaces the cache by a new, empty one.
    void fresh();
    // Removes all entries.
    void clear() { cache_->clear(); }
    // Has the file written to disk.
    void flush() const;
    // Closes it, and removes its file unless it `keeps` that.
    void close(bool keeps);
    // The bytes of its pages that are in use.
    uint64_t charged_bytes() const { return cache_->totalSize() - cache_->freeSize(); }

private:
    void open();

    unsigned capacity_bytes_;
    unsigned mean_bytes_;
    KSharedDataCache::EvictionPolicy policy_;
    std::vector<QString> keys_;
    std::unique_ptr<KSharedDataCache> cache_;
    QByteArray found_;
};
