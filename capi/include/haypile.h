// Haypile: caches of bytes under keys of bytes, bounded in bytes, named by a URL.
//
//     #include <haypile.h>
//
//     haypile_cache *cache;
//     if (haypile_open("memory:size=64MiB,ttl=10m", &cache) != HAYPILE_OK)
//         fprintf(stderr, "%s\n", haypile_last_error());
//     haypile_set(cache, "user:7", 6, "Ada", 3, HAYPILE_TTL_OF_CACHE);
//     void *value;
//     size_t value_bytes;
//     if (haypile_get(cache, "user:7", 6, &value, &value_bytes) == HAYPILE_OK) {
//         fwrite(value, 1, value_bytes, stdout);
//         haypile_free(value);
//     }
//     haypile_close(cache);
//
// These rules hold for every function:
//
// - Keys and values are any bytes, zeros among them. A length of zero is allowed, its pointer is
//   then not read and may be NULL. A key has at most 65535 bytes.
// - A function that can fail returns a haypile_status. A status below zero is an error, whose text
//   haypile_last_error() returns; nothing has changed then, unless the status says otherwise.
// - A function always writes through its pointers named out_...: zero or NULL where there is
//   nothing.
// - A NULL where a pointer is needed causes HAYPILE_ERROR_ARGUMENT. Any other pointer has to be
//   valid for its length. No function keeps a pointer after the call.
// - Any number of threads may use a cache at once, but one thread closes it, once, when no other
//   uses it any more.
// - A TTL is in milliseconds, and more than zero, or one of HAYPILE_TTL_OF_CACHE and
//   HAYPILE_TTL_NEVER.
// - A cache may forget. An entry that was written can be evicted at once.
// - After fork(), a child may go on with a `file:` cache, whatever other threads of the parent were
//   doing at that moment: both processes share it. A `memory:` cache becomes a copy of the child's
//   own, and the child may use it only if no other thread of the parent was in a call at that moment;
//   it is better to open caches in the child. The child must not close a cache that the parent has
//   opened with `persist=`, because that would save the child's copy.
// - A child ends no computation of its parent, even if it was forked within one and returns from it.
//   It waits for none in its copy of a `memory:` cache. In a `file:` cache it is a process like any
//   other, and waits for its parent as haypile_get_or_compute() says.
//
// Link with -lhaypile, or with libhaypile.a -lpthread -ldl -lm.

#ifndef HAYPILE_H
#define HAYPILE_H

// Written by cbindgen from the Rust sources of capi/: change those, and then `make header`.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// For a TTL: what the cache's URL says with `ttl=`; where it says nothing, the entry never
// expires.
#define HAYPILE_TTL_OF_CACHE -1

// For a TTL: the entry never expires. It may still be evicted.
#define HAYPILE_TTL_NEVER -2

// Outcome of a call. Zero and above is an answer; below zero is an error, whose text
// haypile_last_error() returns. Later versions may add values of both kinds.
enum haypile_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The call succeeded.
    HAYPILE_OK = 0,
    // There is no entry under this key.
    HAYPILE_MISS = 1,
    // The condition did not hold and nothing was written: haypile_add() found an entry,
    // haypile_replace() found none.
    HAYPILE_NOT_STORED = 2,
    // The value does not fit into the buffer of haypile_get_into(); nothing was copied.
    HAYPILE_TOO_SMALL = 3,
    // A pointer is NULL, or a number is out of its range.
    HAYPILE_ERROR_ARGUMENT = -1,
    // The cache could not be opened: the URL is wrong, or what it names cannot be used.
    HAYPILE_ERROR_OPEN = -2,
    // The key is longer than the cache takes.
    HAYPILE_ERROR_KEY_TOO_LONG = -3,
    // The value is larger than the cache takes. The old value stays.
    HAYPILE_ERROR_VALUE_TOO_LARGE = -4,
    // There is no memory.
    HAYPILE_ERROR_OUT_OF_MEMORY = -5,
    // haypile_incr() or haypile_decr() met a value that is not a number. The value stays.
    HAYPILE_ERROR_NOT_A_COUNTER = -6,
    // Another user of the cache has closed it.
    HAYPILE_ERROR_CLOSED = -7,
    // A computation asked for the key that it computes, and would wait for itself.
    HAYPILE_ERROR_COMPUTES_ITSELF = -8,
    // The function given to haypile_get_or_compute() did not return zero. Nothing was stored.
    HAYPILE_ERROR_COMPUTE = -9,
    // A cache of this kind cannot do this.
    HAYPILE_ERROR_UNSUPPORTED = -10,
    // Another process holds a part of the store that this call needs, is alive, and does not go
    // on. If the process is known to be stopped or frozen, haypile_last_error() names its number:
    // continue or end it. Otherwise it makes room, or lacks a processor. Nothing has changed; try again.
    HAYPILE_ERROR_BUSY = -11,
    // The cache cannot make room, because every possible victim is in use. The old value stays.
    HAYPILE_ERROR_FULL = -12,
    // The file or server under the cache failed; or an error without a number here occurred. The
    // write may or may not have happened.
    HAYPILE_ERROR_BACKEND = -13,
    // A defect in Haypile, please report it. Close the cache.
    HAYPILE_ERROR_DEFECT = -14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum haypile_status haypile_status;
#else
typedef int32_t haypile_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A cache. haypile_open() makes it and haypile_close() ends it.
typedef struct haypile_cache haypile_cache;

// Where a computation puts its value, with haypile_output_append().
typedef struct haypile_output haypile_output;

// Computes a value: appends its bytes to `output` and returns zero, or anything else if it cannot.
// It has to return: neither longjmp() nor an exception may leave it.
typedef int (*haypile_compute)(void *context, struct haypile_output *output);

// Counts since the cache was opened, and its current contents. A failed operation is counted
// nowhere. Later versions append fields.
typedef struct haypile_stats {
    // Reads that found a value.
    uint64_t hits;
    // Reads that found none, or an expired one.
    uint64_t misses;
    // Accepted writes, including those by haypile_incr() and haypile_decr().
    uint64_t sets;
    // Writes whose condition did not hold.
    uint64_t unmet;
    // Deletions of an entry that was there. haypile_clear() counts none.
    uint64_t deletes;
    // Deletions that found no entry.
    uint64_t delete_misses;
    // New TTLs for an entry that was there.
    uint64_t touches;
    // Calls of haypile_touch() that found no entry.
    uint64_t touch_misses;
    // Calls of haypile_incr() and haypile_decr() that found a counter.
    uint64_t counts;
    // Calls of haypile_incr() and haypile_decr() that found no entry.
    uint64_t count_misses;
    // Entries that were evicted to make room.
    uint64_t evictions;
    // Entries that were removed because their TTL had passed.
    uint64_t expired;
    // New entries that were accepted and not retained.
    uint64_t declined;
    // Values that were found and could not be read back. The caller saw a miss.
    uint64_t corrupt;
    // Entries held now. Some of them may have expired.
    uint64_t entries;
    // Bytes held now: keys, values and metadata.
    uint64_t bytes;
    // The bound on `bytes`; zero where there is none or it is not known.
    uint64_t capacity_bytes;
} haypile_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this library, as in "0.1.0".
const char *haypile_version(void);

// Opens the cache of this URL, UTF-8 text that ends with a zero: "memory:size=64MiB" or
// "memory://?size=64MiB".
haypile_status haypile_open(const char *url, struct haypile_cache **out_cache);

// Ends a cache and frees it, also where an error is given: that what is saved at the end could not
// be saved. NULL is allowed.
haypile_status haypile_close(struct haypile_cache *cache);

// Returns when all earlier writes are visible to all users of the cache; with `durable`, when they
// are on disk. HAYPILE_ERROR_UNSUPPORTED if there is no file.
haypile_status haypile_flush(const struct haypile_cache *cache, bool durable);

// Deletes every entry.
haypile_status haypile_clear(const struct haypile_cache *cache);

// The text of the last error in this thread, for people: what happened, and what to do. Empty if
// there was none. It is never NULL, and valid until the next error in this thread.
const char *haypile_last_error(void);

// Returns the value of a key; if there is none, calls `compute` with `context` and stores its
// value for `ttl_ms`. The caller frees the value with haypile_free().
//
// However many threads ask for one key, one computes, and the others wait for its value; processes
// that share the cache do so too. If the computation fails, each waiting caller computes for
// itself. HAYPILE_ERROR_COMPUTES_ITSELF if the computation of a key asks for that key. The
// function returns a value even if the cache refuses to store it.
//
// Every wait has a bound, `compute_wait=` in the URL, 30 seconds by default: then one of the
// waiting callers computes itself. The others wait for that one as long again at most. The bound
// is one second if the computing process is stopped or frozen.
haypile_status haypile_get_or_compute(const struct haypile_cache *cache,
                                      const void *key,
                                      size_t key_bytes,
                                      int64_t ttl_ms,
                                      haypile_compute compute,
                                      void *context,
                                      void **out_value,
                                      size_t *out_value_bytes);

// Appends bytes to the value that is being computed. If this fails for lack of memory, return a
// number other than zero from the computation.
haypile_status haypile_output_append(struct haypile_output *output,
                                     const void *data,
                                     size_t data_bytes);

// Adds to a counter and returns the new number. A counter is a value of 1 to 20 decimal digits, as
// haypile_set() writes them; beyond 2^64 - 1 it wraps around. Its TTL stays. The call creates no
// entry: HAYPILE_MISS if there is none.
haypile_status haypile_incr(const struct haypile_cache *cache,
                            const void *key,
                            size_t key_bytes,
                            uint64_t delta,
                            uint64_t *out_number);

// Subtracts from a counter and stops at zero; otherwise as haypile_incr().
haypile_status haypile_decr(const struct haypile_cache *cache,
                            const void *key,
                            size_t key_bytes,
                            uint64_t delta,
                            uint64_t *out_number);

// Returns the value of a key, in memory that the caller frees with haypile_free(). HAYPILE_MISS if
// there is none.
haypile_status haypile_get(const struct haypile_cache *cache,
                           const void *key,
                           size_t key_bytes,
                           void **out_value,
                           size_t *out_value_bytes);

// Copies the value of a key into a buffer of `buffer_bytes`, and returns its length. HAYPILE_MISS
// if there is none; HAYPILE_TOO_SMALL, with the length, if it does not fit. The value may have
// changed by the next call.
haypile_status haypile_get_into(const struct haypile_cache *cache,
                                const void *key,
                                size_t key_bytes,
                                void *buffer,
                                size_t buffer_bytes,
                                size_t *out_value_bytes);

// Returns whether there is an entry: HAYPILE_OK or HAYPILE_MISS. Neither the policy nor the
// statistics count this as a read.
haypile_status haypile_contains(const struct haypile_cache *cache,
                                const void *key,
                                size_t key_bytes);

// Frees a value. NULL is allowed.
void haypile_free(void *value);

// Returns the statistics of a cache. `stats_bytes` is sizeof(haypile_stats), so that a program
// that was compiled with an older header gets the fields that it knows.
haypile_status haypile_get_stats(const struct haypile_cache *cache,
                                 struct haypile_stats *out_stats,
                                 size_t stats_bytes);

// Writes a value, whether or not the key has one.
haypile_status haypile_set(const struct haypile_cache *cache,
                           const void *key,
                           size_t key_bytes,
                           const void *value,
                           size_t value_bytes,
                           int64_t ttl_ms);

// Writes a value if the key has none. HAYPILE_NOT_STORED if it has one.
haypile_status haypile_add(const struct haypile_cache *cache,
                           const void *key,
                           size_t key_bytes,
                           const void *value,
                           size_t value_bytes,
                           int64_t ttl_ms);

// Writes a value if the key has one. HAYPILE_NOT_STORED if it has none.
haypile_status haypile_replace(const struct haypile_cache *cache,
                               const void *key,
                               size_t key_bytes,
                               const void *value,
                               size_t value_bytes,
                               int64_t ttl_ms);

// Deletes an entry. HAYPILE_MISS if there was none.
haypile_status haypile_delete(const struct haypile_cache *cache, const void *key, size_t key_bytes);

// Sets a new TTL for an entry, counted from now. HAYPILE_MISS if there is no entry.
haypile_status haypile_touch(const struct haypile_cache *cache,
                             const void *key,
                             size_t key_bytes,
                             int64_t ttl_ms);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAYPILE_H */
