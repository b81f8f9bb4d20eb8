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
// - What a function makes (values, keys, a pinned value, a reservation, a job, a claim) is freed once, by the
//   function that its documentation names.
// - A structure that may grow is passed with its sizeof, so that programs and libraries of different
//   versions understand each other. Fields that the library does not know are set to zero where it
//   writes; where it reads, they have to be zero, or the call causes HAYPILE_ERROR_ARGUMENT. So does a
//   size below that of the structure's first version, such as zero or the size of a pointer.
// - A TTL is in milliseconds, and more than zero, or one of HAYPILE_TTL_OF_CACHE and
//   HAYPILE_TTL_NEVER.
// - A cache may forget. An entry that was written can be evicted at once. While a server does not
//   answer, its cache behaves as one that is empty and retains nothing.
// - After fork(), a child may go on with all caches of its parent, whatever other threads of the parent
//   were doing: fork() waits until no other thread is in a call, and calls that begin then wait for it
//   (the library uses pthread_atfork()). Threads that compute, or wait for one that computes, keep no
//   fork waiting, and a computation may fork. fork() waits one second at most, for example if a thread
//   waits for a server. In the child, the caches of its parent then cause HAYPILE_ERROR_CLOSED, except
//   for a `file:` cache without levels and without `record=`; the child may close them, and open them
//   again. Nothing of this holds for clone() and vfork(), or for a program that loads the library
//   while it forks.
// - Both processes share a `file:` cache and the contents of a server, to which the child opens
//   connections of its own. A `memory:` cache becomes a copy of the child's own, also as an upper
//   level. Writes that wait for a lower level (`write=back`) are done by the parent; those of the child
//   do not wait. A child saves nothing that its parent has opened with `persist=`, and records
//   (`record=`) to a file of its own. It must not read a value that its parent has pinned.
// - A child ends no computation of its parent, even if it was forked within one and returns from it.
//   It waits for none in its copy of a `memory:` cache. In a `file:` cache it is a process like any
//   other, and waits for its parent as haypile_get_or_compute() says.
//
// Compile and link with what `pkg-config --cflags --libs haypile` prints: -lhaypile, or, for the static
// library, libhaypile.a -lpthread -ldl -lm.

#ifndef HAYPILE_H
#define HAYPILE_H

// Written by cbindgen from the Rust sources of capi/: change those, and then `make header`.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// For haypile_entry: write the value, whether or not the key has one.
#define HAYPILE_MODE_SET 0

// For haypile_entry: write the value if the key has none.
#define HAYPILE_MODE_ADD 1

// For haypile_entry: write the value if the key has one.
#define HAYPILE_MODE_REPLACE 2

// For haypile_entry: write the value if the entry still has the version `version`.
#define HAYPILE_MODE_CAS 3

// A TTL that means the `ttl=` of the cache's URL; without one, the entry never expires.
#define HAYPILE_TTL_OF_CACHE -1

// A TTL that means that the entry never expires. It may still be evicted.
#define HAYPILE_TTL_NEVER -2

// Outcome of a call. Zero and above is a result; below zero is an error, whose text
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
    // The condition did not hold and nothing was written or deleted: haypile_add() found an entry,
    // haypile_replace() found none, haypile_cas() or haypile_delete_version() found another version,
    // haypile_compare_and_delete() found another value.
    HAYPILE_NOT_STORED = 2,
    // The value does not fit into the buffer of haypile_get_into(); nothing was copied.
    HAYPILE_TOO_SMALL = 3,
    // There is nothing more: no further key or level.
    HAYPILE_END = 4,
    // Another caller is still computing the value, and the caller's `wait_ms` is over.
    HAYPILE_PENDING = 5,
    // The entry still has the version that the caller of haypile_get_if_changed() knows.
    HAYPILE_UNCHANGED = 6,
    // A pointer is NULL, or a number is out of its range.
    HAYPILE_ERROR_ARGUMENT = -1,
    // The cache could not be opened: the URL is wrong, or what it names cannot be used.
    HAYPILE_ERROR_OPEN = -2,
    // The key is longer than the cache allows.
    HAYPILE_ERROR_KEY_TOO_LONG = -3,
    // The value is larger than the cache allows. The old value stays.
    HAYPILE_ERROR_VALUE_TOO_LARGE = -4,
    // No memory could be allocated.
    HAYPILE_ERROR_OUT_OF_MEMORY = -5,
    // haypile_incr() or haypile_decr() found a value that is not a number. The value stays.
    HAYPILE_ERROR_NOT_A_COUNTER = -6,
    // Another user of the cache has closed it; or a forked child cannot use it, as the rules say, and has
    // to open it again.
    HAYPILE_ERROR_CLOSED = -7,
    // A computation asked for the key that it computes, and would wait for itself.
    HAYPILE_ERROR_COMPUTES_ITSELF = -8,
    // The function that computes the value did not return zero. Nothing was stored.
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

// An open cache. haypile_open() makes it and haypile_close() ends it.
typedef struct haypile_cache haypile_cache;

// The right to compute the value of a key, or a wait for the caller that has this right. haypile_try_claim() makes
// it and ends it with a value; haypile_complete() or haypile_release() ends it otherwise, in any thread, once,
// before the cache is closed.
typedef struct haypile_claim haypile_claim;

// A job: the work of computing a value in another thread. haypile_get_or_refresh_in() makes it;
// haypile_run_job() or haypile_drop_job() ends it, in any thread, once.
typedef struct haypile_job haypile_job;

// An iteration over the keys of a cache. haypile_list_keys() makes it and haypile_free_keys() frees it. One thread
// at a time may use it. It may outlive its cache, but ends with HAYPILE_ERROR_CLOSED then.
typedef struct haypile_keys haypile_keys;

// The buffer for the value of a computation, which appends to it with haypile_output_append().
typedef struct haypile_output haypile_output;

// A value that was read and stays readable until haypile_unpin(), which any thread may call. Threads may read it
// at once. It may outlive its cache.
typedef struct haypile_pinned haypile_pinned;

// A prepared write that waits for its value. haypile_reserve() makes it; haypile_commit()
// or haypile_cancel() ends it, in any thread, before the cache is closed.
typedef struct haypile_reservation haypile_reservation;

// The values of several keys that were read at once. haypile_get_many() makes them and haypile_free_values() frees
// them. They stay after the cache is closed.
typedef struct haypile_values haypile_values;

// The name of a group: 1 to 250 bytes.
typedef struct haypile_group {
    // The bytes of the name of the group.
    const void *name;
    // The length of the name in bytes.
    size_t name_bytes;
} haypile_group;

// A function of the program that computes a value: it appends the bytes to `output` and returns zero, or any other
// number if it fails. It has to return: neither longjmp() nor an exception may leave it.
typedef int (*haypile_compute)(void *context, struct haypile_output *output);

// Limits of a cache. Later versions append fields.
typedef struct haypile_limits {
    // The length of the longest key, in bytes.
    uint64_t max_key_bytes;
    // The length of the longest value under an empty key, in bytes. A longer key can leave less.
    uint64_t max_value_bytes;
    // The bound on the whole cache in bytes; zero if there is none or it is not known.
    uint64_t capacity_bytes;
} haypile_limits;

// A lease: the right to store a value, until its key changes. Its bytes may be copied, and used by another process
// that shares the cache.
typedef struct haypile_lease {
    // The encoded lease; only the cache can interpret it.
    uint8_t bytes[32];
} haypile_lease;

// One of the keys of haypile_get_many() or haypile_delete_many().
typedef struct haypile_key {
    // The bytes of the key.
    const void *key;
    // The length of the key in bytes.
    size_t key_bytes;
} haypile_key;

// Properties of an entry when it was read. Later versions append fields.
typedef struct haypile_hit {
    // The version for haypile_cas(), if `has_version` is not zero.
    uint64_t version;
    // The remaining life in milliseconds, rounded down; HAYPILE_TTL_NEVER if the entry never
    // expires, or if the cache cannot tell.
    int64_t expires_in_ms;
    // 1 if the cache has returned a version, otherwise 0. haypile_get_versioned() also asks caches
    // for which that is more work, such as those of several levels.
    uint32_t has_version;
    // The level that had the entry: of "A -> B", 0 is A. A cache of one level always returns 0.
    uint32_t level;
} haypile_hit;

// One of the writes of haypile_set_many().
typedef struct haypile_entry {
    // The bytes of the key.
    const void *key;
    // The length of the key in bytes.
    size_t key_bytes;
    // The bytes of the value.
    const void *value;
    // The length of the value in bytes.
    size_t value_bytes;
    // The TTL in milliseconds, as for haypile_set(). Zero is an error.
    int64_t ttl_ms;
    // The version that the entry has to have with HAYPILE_MODE_CAS. Other modes ignore it.
    uint64_t version;
    // The condition of the write: HAYPILE_MODE_SET, which is 0, HAYPILE_MODE_ADD, HAYPILE_MODE_REPLACE or
    // HAYPILE_MODE_CAS.
    int32_t mode;
} haypile_entry;

// The times for which a computed value is fresh, and stale but served, in milliseconds. Set a structure to zeros,
// and then the fields that are needed; `fresh_ms` always is. Later versions append fields.
//
//     stored      next one computed     may be served      gone
//       |----- fresh ----[--- early ---]|------ stale ------|
typedef struct haypile_freshness {
    // The time for which a value is fresh. HAYPILE_TTL_OF_CACHE and HAYPILE_TTL_NEVER are allowed if
    // `early_ms` and `stale_ms` are zero.
    int64_t fresh_ms;
    // The time before the end of `fresh_ms` from which on one caller computes the next value, while
    // the others get the current one.
    int64_t early_ms;
    // The additional time for which the value is served while the next one is computed, or cannot
    // be: the entry lives for `fresh_ms` and `stale_ms` together.
    int64_t stale_ms;
    // The longest time to wait for another caller that computes, which then goes on alone. It is
    // checked about every 50 ms. Zero leaves it at the bound of the URL, `compute_wait=`, after which
    // one of the waiting callers computes itself.
    int64_t wait_ms;
} haypile_freshness;

// A function of the program that takes a job: it passes the job to another thread, which runs it, or drops it.
// Neither longjmp() nor an exception may leave this function.
typedef void (*haypile_executor)(void *context, struct haypile_job *job);

// Statistics of a cache: counts since it was opened, and the size of its current contents. A failed operation is
// counted nowhere. Later versions append fields.
typedef struct haypile_stats {
    // Number of reads that found a value.
    uint64_t hits;
    // Number of reads that found no value, or an expired one.
    uint64_t misses;
    // Number of accepted writes, including those by haypile_incr() and haypile_decr().
    uint64_t sets;
    // Number of writes whose condition did not hold.
    uint64_t unmet;
    // Number of deletions that removed an entry. haypile_clear() is not counted.
    uint64_t deletes;
    // Number of deletions that found no entry.
    uint64_t delete_misses;
    // Number of calls of haypile_touch() that found an entry.
    uint64_t touches;
    // Number of calls of haypile_touch() that found no entry.
    uint64_t touch_misses;
    // Number of calls of haypile_incr() and haypile_decr() that found a counter.
    uint64_t counts;
    // Number of calls of haypile_incr() and haypile_decr() that found no entry.
    uint64_t count_misses;
    // Number of entries that were evicted to make room.
    uint64_t evictions;
    // Number of entries that were removed because their TTL had passed.
    uint64_t expired;
    // Number of new entries that were accepted but not stored.
    uint64_t declined;
    // Number of values that were found but damaged. The caller saw a miss.
    uint64_t corrupt;
    // Number of entries now. Some of them may have expired.
    uint64_t entries;
    // Number of bytes of all entries now: keys, values and metadata.
    uint64_t bytes;
    // The bound on `bytes`; zero if there is none or it is not known.
    uint64_t capacity_bytes;
    // Number of operations that were answered as by an empty cache, because the server could not be reached.
    uint64_t unreachable;
    // Number of reads before computations that failed, and counted as misses; zero for a single level, as are
    // the next two.
    uint64_t failed_reads;
    // Number of computed values that the cache refused to store. The callers got them.
    uint64_t refused_values;
    // Number of refreshes that failed while there was a value to serve.
    uint64_t failed_refreshes;
    // Number of entries that were loaded from a saved cache (`persist=`); zero until the loading has ended, as
    // are the next three.
    uint64_t loaded_entries;
    // Time of reading the saved cache, in nanoseconds.
    uint64_t load_read_ns;
    // Time of verifying the saved cache, in nanoseconds.
    uint64_t load_check_ns;
    // Time of inserting the entries of the saved cache, in nanoseconds.
    uint64_t load_insert_ns;
    // Number of connections to a server that were lost while entries were to change, and of which the server
    // did not confirm that it had read them to their end. An older value can come back.
    uint64_t unfenced;
    // Number of writes under a lease that were refused, because the key had changed since or may have; those of
    // haypile_get_or_compute() among them.
    uint64_t revoked;
} haypile_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this library, as in "0.1.0".
const char *haypile_version(void);

// Opens the cache of this URL, UTF-8 text that ends with a zero: "memory:size=64MiB",
// "file:///var/tmp/app.haypile?size=1GiB&namespace=pages", "memcached://127.0.0.1:11211",
// "redis://127.0.0.1:6379/0", or several levels, the fastest first:
// "memory://?size=16MiB -> memcached://127.0.0.1:11211".
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

// Returns the value of a key, or the right to compute it, as haypile_get_or_compute() does without calling a function
// of the program: a caller that gets the right computes the value itself, between two calls. It is for interpreters,
// whose code may leave by longjmp(), and for event loops.
//
// Begin with `*claim` NULL, and pass the same `claim` to each further call:
//
//     haypile_claim *claim = NULL;
//     int64_t wait_ms;
//     while ((status = haypile_try_claim(cache, "user:7", 6, HAYPILE_TTL_OF_CACHE, &claim, &value, &value_bytes, &wait_ms))
//            == HAYPILE_PENDING)
//         wait_a_moment(wait_ms);
//     if (status == HAYPILE_MISS) {
//         value = ask_the_data_base(&value_bytes);
//         status = haypile_complete(claim, value, value_bytes, NULL, 0);
//     }
//
// HAYPILE_OK with the value, which the caller frees with haypile_free(); `*claim` is NULL then, as after an error.
// HAYPILE_MISS if this caller has to compute the value; nobody else of those who share the cache does until
// haypile_complete() or haypile_release(), or the end of its process. HAYPILE_PENDING if another caller computes it:
// call again within `out_wait_ms`, which is more than zero, with the same key; haypile_release() gives up. The waits
// are bounded as those of haypile_get_or_compute() are; a claim that waits for itself, because its holder asks for
// the same key, waits up to that bound.
//
// A child of a fork that inherits a claim can only release it, which changes nothing for its parent.
haypile_status haypile_try_claim(const struct haypile_cache *cache,
                                 const void *key,
                                 size_t key_bytes,
                                 int64_t ttl_ms,
                                 struct haypile_claim **claim,
                                 void **out_value,
                                 size_t *out_value_bytes,
                                 int64_t *out_wait_ms);

// Stores a computed value, unless its key has changed since the computation began, hands it to all who wait for it,
// and frees the claim. It goes into `group_count` groups; NULL and zero for none. HAYPILE_OK also if the cache did
// not store the value. An error leaves nothing stored, and frees the claim as well.
haypile_status haypile_complete(struct haypile_claim *claim,
                                const void *value,
                                size_t value_bytes,
                                const struct haypile_group *groups,
                                size_t group_count);

// Ends a claim without a value; one of the waiting callers computes instead. NULL is allowed.
void haypile_release(struct haypile_claim *claim);

// Returns the value of a key; if there is none, calls `compute` with `context` and stores its
// value for `ttl_ms`. The caller frees the value with haypile_free().
//
// However many threads ask for one key, one computes, and the others wait for its value; processes
// that share the cache do so too. If the computation fails, one of the waiting callers takes over,
// and the others wait for that one. HAYPILE_ERROR_COMPUTES_ITSELF if the computation of a key asks
// for that key. The function returns a value even if the cache refuses to store it.
//
// A caller that has waited for `compute_wait=` of the URL in total, 30 seconds by default, computes itself. If one
// computation takes that long, one of the waiting callers takes over, and the others wait for that one as long again
// at most. The bound is one second if the computing process is stopped or frozen.
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

// Subtracts from a counter, but not below zero, and returns the new number; see haypile_incr().
haypile_status haypile_decr(const struct haypile_cache *cache,
                            const void *key,
                            size_t key_bytes,
                            uint64_t delta,
                            uint64_t *out_number);

// Returns the limits of a cache; `limits_bytes` is sizeof(haypile_limits).
haypile_status haypile_get_limits(const struct haypile_cache *cache,
                                  struct haypile_limits *out_limits,
                                  size_t limits_bytes);

// Returns the number of entries, in the cache's namespace if it has one. Some of them may have expired.
haypile_status haypile_len(const struct haypile_cache *cache,
                           uint64_t *out_entries);

// Returns the bytes that the entries occupy: keys, values and metadata.
haypile_status haypile_bytes(const struct haypile_cache *cache, uint64_t *out_bytes);

// Makes a cache larger or smaller while it is in use. Entries that no longer fit are evicted before
// it returns. HAYPILE_ERROR_UNSUPPORTED if a cache of this kind cannot do this;
// HAYPILE_ERROR_ARGUMENT for a size that it cannot have.
haypile_status haypile_resize(const struct haypile_cache *cache, uint64_t size_bytes);

// Returns the URL of a cache with its defaults and without passwords, as text that ends with a zero
// and that the caller frees with haypile_free().
haypile_status haypile_url(const struct haypile_cache *cache, char **out_text);

// Returns problems that failed no operation: a server that does not answer, a saved cache that is
// damaged, a `size=` that an existing file ignores, a file without a place for this process to write,
// computed values that are too large to be stored. Text for people, one a line, empty if there are none;
// some stay in it when they are over. It ends with a zero, and the caller frees it with haypile_free().
haypile_status haypile_warnings(const struct haypile_cache *cache,
                                char **out_text);

// Returns the levels of a cache that this user does not have alone, so that others may have written their entries: a
// server, or a file that belongs to another user, or that others may write or read. A program asks before it loads
// what runs code, such as a Storable of Perl or a pickle of Python. Text for people, one a line, empty if there are
// none. It ends with a zero, and the caller frees it with haypile_free().
haypile_status haypile_writable_by_others(const struct haypile_cache *cache,
                                          char **out_text);

// Returns the statistics of each level in the text format of Prometheus. It ends with a zero, and
// the caller frees it with haypile_free().
haypile_status haypile_prometheus(const struct haypile_cache *cache, char **out_text);

// Writes a value as haypile_set() does, into `group_count` groups, at most 64. haypile_invalidate() then makes all
// entries of a group a miss:
//
//     haypile_group groups[] = {{"user:7", 6}, {"pages", 5}};
//     haypile_set_in_groups(cache, "page:/ann", 9, page, page_bytes, HAYPILE_TTL_OF_CACHE, groups, 2, &lease);
//     haypile_invalidate(cache, "user:7", 6);
//
// `lease` is NULL, or a lease on the key: then HAYPILE_NOT_STORED if the key has changed since it was granted, or one
// of these groups was invalidated. Later haypile_touch(), haypile_incr() and haypile_decr() keep the groups; any
// other write of the key has those that it names, or none. HAYPILE_ERROR_UNSUPPORTED if the cache has no groups.
haypile_status haypile_set_in_groups(const struct haypile_cache *cache,
                                     const void *key,
                                     size_t key_bytes,
                                     const void *value,
                                     size_t value_bytes,
                                     int64_t ttl_ms,
                                     const struct haypile_group *groups,
                                     size_t group_count,
                                     const struct haypile_lease *lease);

// Returns the value of a key, or computes it and stores it in groups, as haypile_get_or_compute() does. A value
// whose computation began before one of the groups was invalidated is not stored; later callers do not wait for it,
// but compute. In a cache without groups, such as a server, each call computes and stores nothing.
haypile_status haypile_get_or_compute_in_groups(const struct haypile_cache *cache,
                                                const void *key,
                                                size_t key_bytes,
                                                int64_t ttl_ms,
                                                const struct haypile_group *groups,
                                                size_t group_count,
                                                haypile_compute compute,
                                                void *context,
                                                void **out_value,
                                                size_t *out_value_bytes);

// Makes every entry of a group a miss, for all processes that share the cache, and every value that is computed from
// what was read before. It takes the same time for one entry as for a million.
haypile_status haypile_invalidate(const struct haypile_cache *cache,
                                  const void *group,
                                  size_t group_bytes);

// Begins an iteration over the keys of a cache, in no particular order. It holds no lock between two
// calls. A key that has an entry from the beginning to the end is returned at least once; one that
// is written or deleted in the meantime may be returned or not. An entry may be gone when its key is
// returned. With `namespace=` in its URL, a cache has only the keys of that namespace.
haypile_status haypile_list_keys(const struct haypile_cache *cache,
                                 struct haypile_keys **out_keys);

// Returns the next key. It stays until the next call with these keys; do not free it. HAYPILE_END if
// every key was returned; HAYPILE_ERROR_UNSUPPORTED from caches that cannot list their keys. After
// any other error the next call tries again from the same position.
haypile_status haypile_next_key(struct haypile_keys *keys,
                                const void **out_key,
                                size_t *out_key_bytes);

// Ends an iteration. NULL is allowed.
void haypile_free_keys(struct haypile_keys *keys);

// Grants a lease on a key, for haypile_set_leased(). Take it after a miss, before you ask elsewhere for the value:
//
//     haypile_lease lease;
//     if (haypile_get(cache, "user:7", 6, &value, &value_bytes) == HAYPILE_MISS) {
//         haypile_get_lease(cache, "user:7", 6, &lease);
//         ask_the_data_base(name, &name_bytes);
//         haypile_set_leased(cache, "user:7", 6, name, name_bytes, HAYPILE_TTL_OF_CACHE, &lease);
//     }
//
// A lease changes nothing and needs not be given back. haypile_get_or_compute() takes leases by itself.
// HAYPILE_ERROR_UNSUPPORTED if the cache cannot tell whether a key has changed.
haypile_status haypile_get_lease(const struct haypile_cache *cache,
                                 const void *key,
                                 size_t key_bytes,
                                 struct haypile_lease *out_lease);

// Writes a value under a lease. HAYPILE_NOT_STORED if anybody has deleted or written the key since the lease was
// granted, in any process, or may have; nothing is written then.
haypile_status haypile_set_leased(const struct haypile_cache *cache,
                                  const void *key,
                                  size_t key_bytes,
                                  const void *value,
                                  size_t value_bytes,
                                  int64_t ttl_ms,
                                  const struct haypile_lease *lease);

// Returns the values of `key_count` keys, in their order; haypile_values_at() reads them. An error of any key ends
// the call, and haypile_last_error() names its index. A key without a value is not an error.
haypile_status haypile_get_many(const struct haypile_cache *cache,
                                const struct haypile_key *keys,
                                size_t key_count,
                                struct haypile_values **out_values);

// Returns the value of the key with this index in haypile_get_many(), counted from zero. It stays until
// haypile_free_values(); do not free it. HAYPILE_MISS if the key has no value.
haypile_status haypile_values_at(const struct haypile_values *values,
                                 size_t index,
                                 const void **out_value,
                                 size_t *out_value_bytes);

// Returns the properties of the entry with this index in haypile_get_many(); `hit_bytes` is sizeof(haypile_hit).
// HAYPILE_MISS if the key has no value.
haypile_status haypile_values_hit(const struct haypile_values *values,
                                  size_t index,
                                  struct haypile_hit *out_hit,
                                  size_t hit_bytes);

// Frees the values that haypile_get_many() returned. NULL is allowed.
void haypile_free_values(struct haypile_values *values);

// Writes `entry_count` entries. The writes are independent: if one fails, the others are still done.
// `out_statuses` has room for a status of each, in their order, or is NULL: HAYPILE_OK,
// HAYPILE_NOT_STORED, HAYPILE_MISS as from haypile_cas(), or an error. Returns the first error, whose
// index haypile_last_error() names; HAYPILE_OK if there is none, even if a condition did not hold.
haypile_status haypile_set_many(const struct haypile_cache *cache,
                                const struct haypile_entry *entries,
                                size_t entry_count,
                                haypile_status *out_statuses);

// Deletes `key_count` entries. The deletions are independent: if one fails, the others are still
// done. `out_statuses` has room for a status of each, in their order, or is NULL: HAYPILE_OK,
// HAYPILE_MISS if there was no entry, or an error. Returns the first error, whose index
// haypile_last_error() names; HAYPILE_OK if there is none, even if an entry was missing.
haypile_status haypile_delete_many(const struct haypile_cache *cache,
                                   const struct haypile_key *keys,
                                   size_t key_count,
                                   haypile_status *out_statuses);

// Returns the value of a key in place, in the memory of the cache, if possible, and otherwise a copy. The value
// does not change until haypile_unpin(), even if its entry is overwritten, deleted or evicted; but
// the cache cannot use its room in the meantime. A forked child must not read a value that its parent
// has pinned. HAYPILE_MISS if the key has no value; `out_pinned` is NULL then.
haypile_status haypile_get_pinned(const struct haypile_cache *cache,
                                  const void *key,
                                  size_t key_bytes,
                                  struct haypile_pinned **out_pinned,
                                  const void **out_value,
                                  size_t *out_value_bytes);

// Returns the value of a key like haypile_get_pinned(), for a program that keeps many values for long: a `file:`
// cache keeps short values in place as well, where haypile_get_pinned() copies them because that is faster.
haypile_status haypile_get_in_place(const struct haypile_cache *cache,
                                    const void *key,
                                    size_t key_bytes,
                                    struct haypile_pinned **out_pinned,
                                    const void **out_value,
                                    size_t *out_value_bytes);

// Returns the properties that the entry of a pinned value had when it was read; `hit_bytes` is sizeof(haypile_hit).
haypile_status haypile_pinned_hit(const struct haypile_pinned *pinned,
                                  struct haypile_hit *out_hit,
                                  size_t hit_bytes);

// Releases a pinned value; nobody may read its bytes any more. NULL is allowed.
void haypile_unpin(struct haypile_pinned *pinned);

// Returns the value of a key, in memory that the caller frees with haypile_free(). HAYPILE_MISS if there is none.
haypile_status haypile_get(const struct haypile_cache *cache,
                           const void *key,
                           size_t key_bytes,
                           void **out_value,
                           size_t *out_value_bytes);

// Copies the value of a key into a buffer of `buffer_bytes`, and returns its length. HAYPILE_MISS if there is none;
// HAYPILE_TOO_SMALL, with the length, if it does not fit. The value may have changed by the next call.
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

// Frees a value that a function of this library returned. NULL is allowed.
void haypile_free(void *value);

// Does the same as haypile_get_or_compute(), with a value that is refreshed while it is served: when it is due,
// according to `freshness`, one caller computes the next value and gets it, and the others get the current value at
// once. If the computation fails, its caller gets the current value as long as there is one, and a later call tries
// again. The next value replaces only the one that was served: if the entry was written in the meantime, it stays.
//
// Callers wait only while the key has no value. HAYPILE_PENDING if one has waited for `wait_ms`; it has
// no value then, and nothing has changed. `freshness_bytes` is sizeof(haypile_freshness).
haypile_status haypile_get_or_refresh(const struct haypile_cache *cache,
                                      const void *key,
                                      size_t key_bytes,
                                      const struct haypile_freshness *freshness,
                                      size_t freshness_bytes,
                                      haypile_compute compute,
                                      void *context,
                                      void **out_value,
                                      size_t *out_value_bytes);

// Does the same as haypile_get_or_refresh(), but no caller computes while there is a value:
// `executor` gets a job with its `executor_context`, at most once and before this function returns,
// and hands it to a thread of the program. If the key has no value, the caller computes it itself.
//
// `compute` and `context` have to stay usable in any thread until the job has ended: until
// haypile_run_job() has returned or haypile_drop_job() was called. While a job has not ended, no
// other is made for its key. A job does nothing if its key was written in the meantime. If its
// computation fails, the current value is served until it is gone. `fresh_ms` is more than zero here.
haypile_status haypile_get_or_refresh_in(const struct haypile_cache *cache,
                                         const void *key,
                                         size_t key_bytes,
                                         const struct haypile_freshness *freshness,
                                         size_t freshness_bytes,
                                         haypile_executor executor,
                                         void *executor_context,
                                         haypile_compute compute,
                                         void *context,
                                         void **out_value,
                                         size_t *out_value_bytes);

// Computes the value of a job and stores it, in the calling thread, and frees the job. It returns
// HAYPILE_OK even if the computation fails, which haypile_get_stats() counts.
haypile_status haypile_run_job(struct haypile_job *job);

// Frees a job without running it; the next call starts the refresh again. NULL is allowed.
void haypile_drop_job(struct haypile_job *job);

// Prepares a write of exactly `value_bytes`, so that a program can produce the value where it will
// be kept. The caller writes all bytes of `out_buffer`, which are unspecified at first, and then
// calls haypile_commit(). `mode` is one of HAYPILE_MODE_SET, HAYPILE_MODE_ADD, HAYPILE_MODE_REPLACE
// and HAYPILE_MODE_CAS, and `version` is for the last of these.
haypile_status haypile_reserve(const struct haypile_cache *cache,
                               const void *key,
                               size_t key_bytes,
                               size_t value_bytes,
                               int64_t ttl_ms,
                               int32_t mode,
                               uint64_t version,
                               struct haypile_reservation **out_reservation,
                               void **out_buffer);

// Makes the entry visible if the condition of the write holds now, and starts its TTL. It frees the
// reservation in every case, and nobody may use its buffer any more. HAYPILE_NOT_STORED if the
// condition does not hold; HAYPILE_MISS as from haypile_cas().
haypile_status haypile_commit(struct haypile_reservation *reservation);

// Drops a reservation without writing. NULL is allowed.
void haypile_cancel(struct haypile_reservation *reservation);

// Returns the statistics of a cache. `stats_bytes` is sizeof(haypile_stats), so that a program
// that was compiled with an older header gets the fields that it knows.
haypile_status haypile_get_stats(const struct haypile_cache *cache,
                                 struct haypile_stats *out_stats,
                                 size_t stats_bytes);

// Returns the statistics of one level of a cache, the fastest of which is zero. HAYPILE_END if there
// are not that many levels.
haypile_status haypile_get_level_stats(const struct haypile_cache *cache,
                                       size_t level,
                                       struct haypile_stats *out_stats,
                                       size_t stats_bytes);

// Returns the value of a key, in memory that the caller frees with haypile_free(), and its version for haypile_cas()
// and haypile_delete_version(). Each write of an entry changes its version, even one of the same bytes; a version
// means something only in the cache that returned it. HAYPILE_MISS if the key has no value;
// HAYPILE_ERROR_UNSUPPORTED if it has one, in a cache without versions.
haypile_status haypile_get_versioned(const struct haypile_cache *cache,
                                     const void *key,
                                     size_t key_bytes,
                                     void **out_value,
                                     size_t *out_value_bytes,
                                     uint64_t *out_version);

// Does the same as haypile_get_versioned(), but copies nothing if the entry still has a version that an earlier call
// has returned: HAYPILE_UNCHANGED. A program that keeps what it has made of a value so learns that it is still
// true, at the cost of a lookup, however long the value is:
//
//     status = haypile_get_if_changed(cache, "user:7", 6, version, &value, &value_bytes, &version);
//     if (status == HAYPILE_OK) {
//         user = decode(value, value_bytes);
//         haypile_free(value);
//     } else if (status != HAYPILE_UNCHANGED) {
//         user = NULL;
//     }
//
// It counts as a hit. `version` may be `*out_version`, which is zero without an entry; zero is the version of none. A
// server that restarts may give a version again: do not keep one of a server for long.
haypile_status haypile_get_if_changed(const struct haypile_cache *cache,
                                      const void *key,
                                      size_t key_bytes,
                                      uint64_t version,
                                      void **out_value,
                                      size_t *out_value_bytes,
                                      uint64_t *out_version);

// Writes a value if the entry still has this version (compare and swap). HAYPILE_NOT_STORED if it
// has another, because the entry was written since; HAYPILE_MISS if the key has no entry any more.
haypile_status haypile_cas(const struct haypile_cache *cache,
                           const void *key,
                           size_t key_bytes,
                           const void *value,
                           size_t value_bytes,
                           int64_t ttl_ms,
                           uint64_t version);

// Deletes an entry if it still has this version. HAYPILE_NOT_STORED if it has another, or if there is
// none; HAYPILE_ERROR_UNSUPPORTED if the cache cannot compare and delete at once.
haypile_status haypile_delete_version(const struct haypile_cache *cache,
                                      const void *key,
                                      size_t key_bytes,
                                      uint64_t version);

// Deletes an entry if its value is `expected`, in one step: a lock that is an entry is released only by
// its holder. HAYPILE_NOT_STORED if it has another value, or if there is none; HAYPILE_ERROR_UNSUPPORTED
// if the cache cannot compare and delete at once.
haypile_status haypile_compare_and_delete(const struct haypile_cache *cache,
                                          const void *key,
                                          size_t key_bytes,
                                          const void *expected,
                                          size_t expected_bytes);

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

// Sets a new TTL for an entry, counted from now. HAYPILE_MISS if the key has no entry.
haypile_status haypile_touch(const struct haypile_cache *cache,
                             const void *key,
                             size_t key_bytes,
                             int64_t ttl_ms);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HAYPILE_H */
