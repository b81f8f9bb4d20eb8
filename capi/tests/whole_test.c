// Questions about whole caches, levels and servers.

#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

static int text_has(haypile_status (*describe)(const haypile_cache *, char **),
                    const haypile_cache *cache, const char *part)
{
    char *text;
    CHECK(describe(cache, &text) == HAYPILE_OK);
    int found = strstr(text, part) != NULL;
    haypile_free(text);
    return found;
}

void test_whole_caches(haypile_cache *cache, const char *url)
{
    haypile_limits limits;
    uint64_t entries, bytes;
    haypile_stats stats, level;
    char *text;
    CHECK(haypile_get_limits(cache, &limits, sizeof limits) == HAYPILE_OK);
    CHECK(limits.max_key_bytes == 65535 && limits.max_value_bytes > 0);
    CHECK(set(cache, "whole", "v") == HAYPILE_OK);
    CHECK(haypile_len(cache, &entries) == HAYPILE_OK && entries > 0);
    CHECK(haypile_bytes(cache, &bytes) == HAYPILE_OK && bytes > 0);
    CHECK(haypile_get_stats(cache, &stats, sizeof stats) == HAYPILE_OK);
    CHECK(stats.entries == entries && stats.bytes == bytes);
    CHECK(stats.capacity_bytes == limits.capacity_bytes);
    CHECK(haypile_get_level_stats(cache, 0, &level, sizeof level) == HAYPILE_OK);
    CHECK(level.sets == stats.sets && level.entries == stats.entries);
    CHECK(haypile_get_level_stats(cache, 1, &level, sizeof level) == HAYPILE_END);
    CHECK(level.sets == 0);
    CHECK(text_has(haypile_url, cache, strncmp(url, "file:", 5) == 0 ? "file://" : "memory://"));
    CHECK(text_has(haypile_prometheus, cache, "haypile_"));
    CHECK(haypile_warnings(cache, &text) == HAYPILE_OK && strlen(text) == 0);
    haypile_free(text);

    CHECK(haypile_len(NULL, &entries) == HAYPILE_ERROR_ARGUMENT && entries == 0);
    CHECK(haypile_len(cache, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_bytes(NULL, &bytes) == HAYPILE_ERROR_ARGUMENT && bytes == 0);
    CHECK(haypile_bytes(cache, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_limits(NULL, &limits, sizeof limits) == HAYPILE_ERROR_ARGUMENT);
    CHECK(limits.max_key_bytes == 0);
    CHECK(haypile_get_limits(cache, NULL, sizeof limits) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_level_stats(NULL, 0, &level, sizeof level) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_level_stats(cache, 0, NULL, sizeof level) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_stats(cache, &stats, (size_t)-1) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_url(cache, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_url(NULL, &text) == HAYPILE_ERROR_ARGUMENT && text == NULL);
    CHECK(haypile_warnings(NULL, &text) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_prometheus(NULL, &text) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_writable_by_others(NULL, &text) == HAYPILE_ERROR_ARGUMENT && text == NULL);
    CHECK(haypile_resize(NULL, 1 << 20) == HAYPILE_ERROR_ARGUMENT);

    haypile_cache *sized;
    CHECK(haypile_open("memory:size=8MiB", &sized) == HAYPILE_OK);
    CHECK(haypile_resize(sized, 2 << 20) == HAYPILE_OK);
    CHECK(haypile_get_limits(sized, &limits, sizeof limits) == HAYPILE_OK);
    CHECK(limits.capacity_bytes == 2 << 20);
    CHECK(haypile_resize(sized, 1) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_close(sized) == HAYPILE_OK);
    CHECK(haypile_open("none:", &sized) == HAYPILE_OK);
    CHECK(haypile_resize(sized, 2 << 20) == HAYPILE_ERROR_UNSUPPORTED);
    CHECK(haypile_close(sized) == HAYPILE_OK);
}

static int compute_much(void *context, haypile_output *output)
{
    static const char much[4096];
    (void)context;
    return haypile_output_append(output, much, sizeof much);
}

// What failed no call is told all the same.
static void test_warnings(void)
{
    haypile_cache *cache;
    haypile_stats stats;
    void *value;
    size_t value_bytes;
    char *text;
    CHECK(haypile_open("memory:size=1KiB", &cache) == HAYPILE_OK);
    for (uint64_t times = 1; times <= 2; times++) {
        CHECK(haypile_get_or_compute(cache, "much", 4, 60000, compute_much, NULL, &value,
                                     &value_bytes) == HAYPILE_OK);
        CHECK(value_bytes == 4096);
        haypile_free(value);
        CHECK(haypile_get_stats(cache, &stats, sizeof stats) == HAYPILE_OK);
        CHECK(stats.refused_values == times && stats.failed_reads == 0);
    }
    CHECK(text_has(haypile_warnings, cache, "2 computed values were not stored"));
    CHECK(text_has(haypile_warnings, cache, "4096 bytes is too large"));
    CHECK(text_has(haypile_prometheus, cache, "haypile_refused_values_total"));
    CHECK(haypile_close(cache) == HAYPILE_OK);

    // A file is there, and is not a snapshot.
    char path[] = "/tmp/haypile-test-XXXXXX", url[128];
    int file = mkstemp(path);
    CHECK(file >= 0 && write(file, "not a snapshot", 14) == 14 && close(file) == 0);
    snprintf(url, sizeof url, "memory:size=1MiB,persist=%s", path);
    CHECK(haypile_open(url, &cache) == HAYPILE_OK);
    CHECK(text_has(haypile_warnings, cache, path));
    // It is left as it is.
    CHECK(haypile_close(cache) == HAYPILE_ERROR_BACKEND);
    CHECK(unlink(path) == 0);

    // A file keeps its size.
    snprintf(url, sizeof url, "file:%s,size=2MiB", path);
    if (haypile_open(url, &cache) != HAYPILE_OK) {
        CHECK(error_says("needs Linux"));
        return;
    }
    CHECK(haypile_warnings(cache, &text) == HAYPILE_OK && strlen(text) == 0);
    haypile_free(text);
    CHECK(haypile_close(cache) == HAYPILE_OK);
    snprintf(url, sizeof url, "file:%s,size=64MiB", path);
    CHECK(haypile_open(url, &cache) == HAYPILE_OK);
    CHECK(text_has(haypile_warnings, cache, "size=64MiB has no effect"));
    CHECK(text_has(haypile_url, cache, "?size=2MiB"));
    CHECK(haypile_writable_by_others(cache, &text) == HAYPILE_OK && strlen(text) == 0);
    haypile_free(text);
    CHECK(chmod(path, 0660) == 0);
    CHECK(text_has(haypile_writable_by_others, cache, path));
    CHECK(text_has(haypile_writable_by_others, cache, "mode 660"));
    CHECK(haypile_close(cache) == HAYPILE_OK);
    CHECK(unlink(path) == 0);
}

static void test_levels(void)
{
    haypile_cache *cache;
    haypile_pinned *pinned;
    haypile_hit hit;
    haypile_stats stats;
    const void *value;
    size_t value_bytes;
    CHECK(haypile_open("memory:size=1MiB -> memory:size=8MiB", &cache) == HAYPILE_OK);
    CHECK(set(cache, "key", "value") == HAYPILE_OK);
    CHECK(haypile_get_pinned(cache, "key", 3, &pinned, &value, &value_bytes) == HAYPILE_OK);
    CHECK(haypile_pinned_hit(pinned, &hit, sizeof hit) == HAYPILE_OK && hit.level <= 1);
    haypile_unpin(pinned);
    CHECK(haypile_get_level_stats(cache, 1, &stats, sizeof stats) == HAYPILE_OK);
    CHECK(stats.sets == 1 && stats.capacity_bytes == 8 << 20);
    CHECK(haypile_get_level_stats(cache, 2, &stats, sizeof stats) == HAYPILE_END);
    CHECK(text_has(haypile_url, cache, " -> memory://"));
    CHECK(haypile_close(cache) == HAYPILE_OK);
}

// The servers that capi/tests/run has started, where they are installed.
static void test_a_server(const char *url, bool lists_keys)
{
    haypile_cache *cache;
    haypile_keys *keys;
    const void *key;
    size_t key_bytes;
    haypile_status status;
    haypile_values *values;
    haypile_key many[] = {{"a", 1}, {"b", 1}};
    uint64_t number;
    // Under valgrind, and on a busy machine, an answer may take longer than by default.
    char patient[256];
    snprintf(patient, sizeof patient, "%s?timeout=1min", url);
    CHECK(haypile_open(patient, &cache) == HAYPILE_OK);
    CHECK(text_has(haypile_writable_by_others, cache, strrchr(url, '/')));
    CHECK(set(cache, "a", "41") == HAYPILE_OK && has(cache, "a", "41"));
    CHECK(haypile_incr(cache, "a", 1, 1, &number) == HAYPILE_OK && number == 42);
    CHECK(haypile_get_many(cache, many, 2, &values) == HAYPILE_OK);
    CHECK(haypile_values_at(values, 0, &key, &key_bytes) == HAYPILE_OK && key_bytes == 2);
    CHECK(haypile_values_at(values, 1, &key, &key_bytes) == HAYPILE_MISS);
    haypile_free_values(values);
    CHECK(haypile_list_keys(cache, &keys) == HAYPILE_OK);
    status = haypile_next_key(keys, &key, &key_bytes);
    CHECK(status == (lists_keys ? HAYPILE_OK : HAYPILE_ERROR_UNSUPPORTED));
    haypile_free_keys(keys);
    CHECK(haypile_compare_and_delete(cache, "a", 1, "41", 2) == HAYPILE_NOT_STORED);
    CHECK(haypile_compare_and_delete(cache, "a", 1, "42", 2) == HAYPILE_OK && has(cache, "a", NULL));
    CHECK(set(cache, "a", "41") == HAYPILE_OK);
    CHECK(haypile_delete(cache, "a", 1) == HAYPILE_OK && has(cache, "a", NULL));
    CHECK(haypile_close(cache) == HAYPILE_OK);
}

// Whatever is wrong with a URL, the text of the error does not contain its password.
static void test_no_password_is_shown(void)
{
    static const char *const urls[] = {
        "redis://u:hunter2@127.0.0.1:1/0,timeout=1s",
        "redis://u:hunter2@127.0.0.1:1/none",
        "redis://:hun/hunter2@127.0.0.1:1?timeout",
        "redis:u:hun,hunter2@127.0.0.1:1",
        "redis+unix://:hunter2@/run/nothing.sock",
        "memory:size=1MiB -> redis://u:hunter2@127.0.0.1:1->none:",
        "memcached://u:hunter2@127.0.0.1:1/path",
        "u:hun%ter%hunter2@h",
        "://:hunter2@h",
        "redis://u:hunter2",
    };
    for (size_t at = 0; at < sizeof urls / sizeof *urls; at++) {
        haypile_cache *cache;
        CHECK(haypile_open(urls[at], &cache) == HAYPILE_ERROR_OPEN && cache == NULL);
        CHECK(!error_says("hunter2") && strlen(haypile_last_error()) > 0);
    }
}

void test_levels_and_servers(void)
{
    haypile_cache *cache;
    test_levels();
    test_warnings();
    test_no_password_is_shown();
    // The schemes are there, and nobody listens.
    CHECK(haypile_open("memcached:///nowhere/memcached.sock", &cache) == HAYPILE_ERROR_OPEN);
    CHECK(error_says("memcached:///nowhere") && !error_says("not registered") && cache == NULL);
    CHECK(haypile_open("redis+unix:///nowhere/redis.sock", &cache) == HAYPILE_ERROR_OPEN);
    CHECK(!error_says("not registered"));
    CHECK(haypile_open("redis://127.0.0.1:1", &cache) == HAYPILE_ERROR_OPEN);
    CHECK(haypile_open("redis+cluster://127.0.0.1:1", &cache) == HAYPILE_ERROR_OPEN);
    CHECK(haypile_open("memory:size=1MiB -> nothing:", &cache) == HAYPILE_ERROR_OPEN);
    CHECK(error_says("memcached"));
    const char *memcached = getenv("HAYPILE_TEST_MEMCACHED");
    const char *redis = getenv("HAYPILE_TEST_REDIS");
    if (memcached != NULL) {
        char url[512];
        test_a_server(memcached, false);
        snprintf(url, sizeof url, "memory://?size=1MiB -> %s", memcached);
        test_a_server(url, false);
    }
    if (redis != NULL)
        test_a_server(redis, true);
}
