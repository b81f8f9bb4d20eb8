// What the C interface promises, called from C. capi/tests/run compiles and runs it.
//
//     haypile_test [URL]
//
// Exit status: 0 all is well, 1 something is not.

#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 500

static void test_values(haypile_cache *cache)
{
    CHECK(has(cache, "key", NULL));
    CHECK(set(cache, "key", "value") == HAYPILE_OK);
    CHECK(has(cache, "key", "value"));
    CHECK(haypile_contains(cache, "key", 3) == HAYPILE_OK);

    CHECK(haypile_add(cache, "key", 3, "other", 5, HAYPILE_TTL_NEVER) == HAYPILE_NOT_STORED);
    CHECK(haypile_replace(cache, "key", 3, "next", 4, HAYPILE_TTL_NEVER) == HAYPILE_OK);
    CHECK(has(cache, "key", "next"));
    CHECK(haypile_replace(cache, "none", 4, "next", 4, HAYPILE_TTL_NEVER) == HAYPILE_NOT_STORED);
    CHECK(haypile_add(cache, "new", 3, "added", 5, 60000) == HAYPILE_OK);
    CHECK(has(cache, "new", "added"));

    CHECK(haypile_touch(cache, "new", 3, 30000) == HAYPILE_OK);
    CHECK(haypile_touch(cache, "none", 4, 30000) == HAYPILE_MISS);
    CHECK(haypile_delete(cache, "key", 3) == HAYPILE_OK);
    CHECK(haypile_delete(cache, "key", 3) == HAYPILE_MISS);
    CHECK(haypile_contains(cache, "key", 3) == HAYPILE_MISS);
    CHECK(has(cache, "key", NULL));
}

static void test_any_bytes_and_no_bytes(haypile_cache *cache)
{
    const unsigned char key[] = {0, 255, 0, 10};
    const unsigned char bytes[] = {0, 1, 0, 254, 0};
    void *value;
    size_t value_bytes;
    CHECK(haypile_set(cache, key, sizeof key, bytes, sizeof bytes, HAYPILE_TTL_NEVER) ==
          HAYPILE_OK);
    CHECK(haypile_get(cache, key, sizeof key, &value, &value_bytes) == HAYPILE_OK);
    CHECK(value_bytes == sizeof bytes && memcmp(value, bytes, sizeof bytes) == 0);
    haypile_free(value);

    CHECK(haypile_set(cache, NULL, 0, NULL, 0, HAYPILE_TTL_NEVER) == HAYPILE_OK);
    CHECK(haypile_get(cache, NULL, 0, &value, &value_bytes) == HAYPILE_OK);
    CHECK(value != NULL && value_bytes == 0);
    haypile_free(value);
    haypile_free(NULL);
}

static void test_a_buffer_of_the_caller(haypile_cache *cache)
{
    char buffer[6] = "......";
    size_t value_bytes = 99;
    CHECK(haypile_get_into(cache, "into", 4, buffer, 4, &value_bytes) == HAYPILE_MISS);
    CHECK(value_bytes == 0);
    CHECK(set(cache, "into", "12345") == HAYPILE_OK);
    CHECK(haypile_get_into(cache, "into", 4, buffer, 4, &value_bytes) == HAYPILE_TOO_SMALL);
    CHECK(value_bytes == 5 && memcmp(buffer, "......", 6) == 0);
    CHECK(haypile_get_into(cache, "into", 4, NULL, 0, &value_bytes) == HAYPILE_TOO_SMALL);
    CHECK(haypile_get_into(cache, "into", 4, buffer, 5, &value_bytes) == HAYPILE_OK);
    CHECK(value_bytes == 5 && memcmp(buffer, "12345.", 6) == 0);
    CHECK(haypile_get_into(cache, "into", 4, NULL, 5, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
}

static void test_counters(haypile_cache *cache)
{
    uint64_t number = 99;
    CHECK(haypile_incr(cache, "count", 5, 1, &number) == HAYPILE_MISS && number == 0);
    CHECK(set(cache, "count", "41") == HAYPILE_OK);
    CHECK(haypile_incr(cache, "count", 5, 1, &number) == HAYPILE_OK && number == 42);
    CHECK(haypile_decr(cache, "count", 5, 50, &number) == HAYPILE_OK && number == 0);
    CHECK(set(cache, "count", "many") == HAYPILE_OK);
    CHECK(haypile_incr(cache, "count", 5, 1, &number) == HAYPILE_ERROR_NOT_A_COUNTER);
    CHECK(error_says("decimal digits"));
    CHECK(has(cache, "count", "many"));
}

static void test_what_is_refused(haypile_cache *cache, const char *url)
{
    size_t large_bytes = (size_t)1 << 30;
    char *large = calloc(1, large_bytes);
    void *value = large;
    size_t value_bytes = 99;
    uint64_t number;
    CHECK(large != NULL);

    CHECK(haypile_set(cache, large, 65536, "v", 1, 1000) == HAYPILE_ERROR_KEY_TOO_LONG);
    CHECK(error_says("65535"));
    CHECK(set(cache, "large", "old") == HAYPILE_OK);
    CHECK(haypile_set(cache, "large", 5, large, large_bytes, 1000) ==
          HAYPILE_ERROR_VALUE_TOO_LARGE);
    CHECK(error_says("1073741824 bytes is too large"));
    CHECK(has(cache, "large", "old"));
    free(large);

    CHECK(haypile_set(cache, "k", 1, "v", 1, 0) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("TTL of zero"));
    CHECK(haypile_set(cache, "k", 1, "v", 1, -3) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("-3 ms"));

    CHECK(haypile_get(NULL, "k", 1, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("cache is NULL") && value == NULL && value_bytes == 0);
    CHECK(haypile_get(cache, NULL, 1, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("key is NULL"));
    CHECK(haypile_get(cache, "k", (size_t)-1, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get(cache, "k", 1, NULL, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("out_value is NULL"));
    CHECK(haypile_get(cache, "k", 1, &value, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_set(cache, "k", 1, NULL, 1, 1000) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_add(NULL, "k", 1, "v", 1, 1000) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_delete(NULL, "k", 1) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_touch(NULL, "k", 1, 1000) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_contains(NULL, "k", 1) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_incr(NULL, "k", 1, 1, &number) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_incr(cache, "k", 1, 1, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_clear(NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_flush(NULL, false) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_stats(cache, NULL, 8) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_or_compute(cache, "k", 1, 1000, NULL, NULL, &value, &value_bytes) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("compute is NULL"));
    CHECK(haypile_output_append(NULL, "", 0) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_close(NULL) == HAYPILE_OK);

    haypile_cache *other = cache;
    CHECK(haypile_open(url, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_open(NULL, &other) == HAYPILE_ERROR_ARGUMENT && other == NULL);
    CHECK(haypile_open("memory:sise=1MiB", &other) == HAYPILE_ERROR_OPEN && other == NULL);
    CHECK(error_says("sise"));
    CHECK(haypile_open("file:/tmp/none,size=1MiB,mode=copy", &other) == HAYPILE_ERROR_OPEN);
    CHECK(error_says("the option 'size' has no effect with mode=copy; leave out one of them"));
    CHECK(haypile_open("memory:\xff", &other) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("UTF-8"));
}

struct computation {
    haypile_cache *cache;
    const char *value;
    int answer;
    int calls;
};

static int compute(void *context, haypile_output *output)
{
    struct computation *computation = context;
    computation->calls++;
    // In two parts.
    size_t value_bytes = strlen(computation->value);
    CHECK(haypile_output_append(output, computation->value, 1) == HAYPILE_OK);
    CHECK(haypile_output_append(output, computation->value + 1, value_bytes - 1) == HAYPILE_OK);
    CHECK(haypile_output_append(output, NULL, 0) == HAYPILE_OK);
    return computation->answer;
}

static int compute_by_asking(void *context, haypile_output *output)
{
    struct computation *computation = context;
    void *value;
    size_t value_bytes;
    (void)output;
    computation->answer = haypile_get_or_compute(computation->cache, "itself", 6, 1000,
                                                 compute_by_asking, context, &value, &value_bytes);
    return 7;
}

static void test_computing(haypile_cache *cache)
{
    struct computation computation = {.cache = cache, .value = "computed"};
    void *value;
    size_t value_bytes;
    for (int i = 0; i < 2; i++) {
        CHECK(haypile_get_or_compute(cache, "page", 4, 60000, compute, &computation, &value,
                                     &value_bytes) == HAYPILE_OK);
        CHECK(value_bytes == 8 && memcmp(value, "computed", 8) == 0);
        haypile_free(value);
    }
    CHECK(computation.calls == 1);

    computation.answer = 7;
    CHECK(haypile_get_or_compute(cache, "fails", 5, 60000, compute, &computation, &value,
                                 &value_bytes) == HAYPILE_ERROR_COMPUTE);
    CHECK(error_says("returned 7") && value == NULL && value_bytes == 0);
    CHECK(has(cache, "fails", NULL));

    CHECK(haypile_get_or_compute(cache, "itself", 6, 60000, compute_by_asking, &computation,
                                 &value, &value_bytes) == HAYPILE_ERROR_COMPUTE);
    CHECK(computation.answer == HAYPILE_ERROR_COMPUTES_ITSELF);
}

static void test_statistics(haypile_cache *cache)
{
    haypile_stats before, after;
    CHECK(haypile_get_stats(cache, &before, sizeof before) == HAYPILE_OK);
    CHECK(set(cache, "counted", "v") == HAYPILE_OK);
    CHECK(has(cache, "counted", "v"));
    CHECK(haypile_get_stats(cache, &after, sizeof after) == HAYPILE_OK);
    CHECK(after.hits == before.hits + 1 && after.misses == before.misses);
    CHECK(after.sets == before.sets + 1 && after.entries == before.entries + 1);
    CHECK(after.bytes > before.bytes && after.bytes <= after.capacity_bytes);
}

// Before there are other threads: see the header on fork().
static void test_a_forked_child(haypile_cache *cache, bool shared)
{
    CHECK(set(cache, "forked", "parent's") == HAYPILE_OK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(has(cache, "forked", "parent's"));
        CHECK(set(cache, "forked", "child's") == HAYPILE_OK);
        CHECK(has(cache, "forked", "child's"));
        CHECK(haypile_close(cache) == HAYPILE_OK);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(has(cache, "forked", shared ? "child's" : "parent's"));
}

struct forked_computation {
    haypile_cache *cache;
    bool shared;
    pid_t child;
};

// Forks. The child computes the key in its copy of a cache, and then returns as its parent does.
static int compute_in_two_processes(void *context, haypile_output *output)
{
    struct forked_computation *computation = context;
    computation->child = fork();
    CHECK(computation->child >= 0);
    if (computation->child > 0) {
        int status;
        CHECK(waitpid(computation->child, &status, 0) == computation->child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return haypile_output_append(output, "parent's", 8);
    }
    if (!computation->shared) {
        struct computation own = {.value = "own"};
        void *value;
        size_t value_bytes;
        CHECK(haypile_get_or_compute(computation->cache, "in two", 6, 60000, compute, &own, &value,
                                     &value_bytes) == HAYPILE_OK);
        CHECK(own.calls == 1 && value_bytes == 3 && memcmp(value, "own", 3) == 0);
        haypile_free(value);
    }
    return haypile_output_append(output, "child's", 7);
}

static void test_a_fork_in_a_computation(haypile_cache *cache, bool shared)
{
    struct forked_computation computation = {.cache = cache, .shared = shared};
    void *value;
    size_t value_bytes;
    CHECK(haypile_get_or_compute(cache, "in two", 6, 60000, compute_in_two_processes, &computation,
                                 &value, &value_bytes) == HAYPILE_OK);
    const char *expected = computation.child == 0 ? "child's" : "parent's";
    CHECK(value_bytes == strlen(expected) && memcmp(value, expected, value_bytes) == 0);
    haypile_free(value);
    if (computation.child == 0) {
        CHECK(haypile_close(cache) == HAYPILE_OK);
        _exit(0);
    }
    // The child returned before, and stored nothing: the computation is its parent's.
    CHECK(has(cache, "in two", "parent's"));
}

struct worker {
    haypile_cache *cache;
    int number;
};

static void *work(void *context)
{
    struct worker *worker = context;
    char key[32], buffer[32];
    size_t value_bytes;
    uint64_t number;
    snprintf(key, sizeof key, "thread %d", worker->number);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(haypile_incr(worker->cache, "all", 3, 1, &number) == HAYPILE_OK);
        CHECK(set(worker->cache, key, key) == HAYPILE_OK);
        CHECK(haypile_get_into(worker->cache, key, strlen(key), buffer, sizeof buffer,
                               &value_bytes) == HAYPILE_OK);
        CHECK(value_bytes == strlen(key) && memcmp(buffer, key, value_bytes) == 0);
    }
    // The text of an error is its thread's own.
    CHECK(haypile_set(worker->cache, key, strlen(key), "v", 1, -10 - worker->number) ==
          HAYPILE_ERROR_ARGUMENT);
    snprintf(buffer, sizeof buffer, "%d ms", -10 - worker->number);
    CHECK(error_says(buffer));
    return NULL;
}

static void test_threads(haypile_cache *cache)
{
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    uint64_t number;
    CHECK(set(cache, "all", "0") == HAYPILE_OK);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.cache = cache, .number = i};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(haypile_incr(cache, "all", 3, 0, &number) == HAYPILE_OK);
    CHECK(number == (uint64_t)THREADS * ROUNDS);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "memory:size=4MiB";
    haypile_cache *cache;
    CHECK(strcmp(haypile_last_error(), "") == 0);
    CHECK(strlen(haypile_version()) > 0);
    CHECK(haypile_open(url, &cache) == HAYPILE_OK);
    test_values(cache);
    test_any_bytes_and_no_bytes(cache);
    test_a_buffer_of_the_caller(cache);
    test_counters(cache);
    test_what_is_refused(cache, url);
    test_computing(cache);
    test_statistics(cache);
    test_groups(cache);
    test_leases(cache);
    test_claims(cache);
    test_versions(cache);
    test_many(cache);
    test_keys(cache, url);
    test_pinned(cache, url);
    test_reservations(cache);
    test_whole_caches(cache, url);
    test_structures(cache);
    const bool shared = strncmp(url, "file:", 5) == 0;
    test_a_forked_child(cache, shared);
    test_a_fork_in_a_computation(cache, shared);
    test_threads(cache);
    test_refreshes(cache);
    test_levels_and_servers();
    CHECK(haypile_flush(cache, false) == HAYPILE_OK);
    CHECK(haypile_clear(cache) == HAYPILE_OK);
    CHECK(has(cache, "page", NULL));
    CHECK(haypile_close(cache) == HAYPILE_OK);
    printf("haypile_test: all is well with %s\n", url);
    return 0;
}
