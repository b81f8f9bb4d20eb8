// Iteration over keys, and namespaces.

#include "test.h"

#include <pthread.h>

#define STAYING 600
#define PASSING 600

static void *delete_passing(void *context)
{
    haypile_cache *cache = context;
    char key[32];
    for (int i = 0; i < PASSING; i++) {
        snprintf(key, sizeof key, "passing %d", i);
        CHECK(haypile_delete(cache, key, strlen(key)) == HAYPILE_OK);
    }
    return NULL;
}

static void test_concurrent_deletions(haypile_cache *cache)
{
    char key[32];
    int seen[STAYING] = {0};
    for (int i = 0; i < STAYING; i++) {
        snprintf(key, sizeof key, "staying %d", i);
        CHECK(set(cache, key, "v") == HAYPILE_OK);
        snprintf(key, sizeof key, "passing %d", i);
        CHECK(set(cache, key, "v") == HAYPILE_OK);
    }
    haypile_keys *keys;
    const void *bytes;
    size_t key_bytes;
    haypile_status status;
    pthread_t thread;
    CHECK(haypile_list_keys(cache, &keys) == HAYPILE_OK);
    CHECK(haypile_next_key(keys, &bytes, &key_bytes) == HAYPILE_OK && key_bytes > 0);
    CHECK(pthread_create(&thread, NULL, delete_passing, cache) == 0);
    do {
        int number;
        char text[32] = "";
        CHECK(key_bytes < sizeof text);
        memcpy(text, bytes, key_bytes);
        if (sscanf(text, "staying %d", &number) == 1)
            seen[number]++;
        // The iteration itself may delete what it finds.
        if (strcmp(text, "found") == 0)
            CHECK(haypile_delete(cache, "found", 5) == HAYPILE_OK);
    } while ((status = haypile_next_key(keys, &bytes, &key_bytes)) == HAYPILE_OK);
    CHECK(status == HAYPILE_END && bytes == NULL && key_bytes == 0);
    CHECK(haypile_next_key(keys, &bytes, &key_bytes) == HAYPILE_END);
    CHECK(pthread_join(thread, NULL) == 0);
    for (int i = 0; i < STAYING; i++)
        CHECK(seen[i] >= 1);
    haypile_free_keys(keys);
}

static void test_errors(haypile_cache *cache)
{
    haypile_keys *keys;
    const void *key;
    size_t key_bytes;
    CHECK(haypile_list_keys(NULL, &keys) == HAYPILE_ERROR_ARGUMENT && keys == NULL);
    CHECK(haypile_list_keys(cache, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_next_key(NULL, &key, &key_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_list_keys(cache, &keys) == HAYPILE_OK);
    CHECK(haypile_next_key(keys, NULL, &key_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_next_key(keys, &key, NULL) == HAYPILE_ERROR_ARGUMENT && key == NULL);
    haypile_free_keys(keys);
    haypile_free_keys(NULL);

    haypile_cache *closed;
    CHECK(haypile_open("memory:size=1MiB", &closed) == HAYPILE_OK);
    CHECK(haypile_list_keys(closed, &keys) == HAYPILE_OK);
    CHECK(haypile_close(closed) == HAYPILE_OK);
    CHECK(haypile_next_key(keys, &key, &key_bytes) == HAYPILE_ERROR_CLOSED);
    haypile_free_keys(keys);
}

// A cache with `namespace=` of the same file sees its own entries only.
static void test_a_namespace(haypile_cache *cache, const char *url)
{
    char named[512];
    haypile_cache *other;
    haypile_keys *keys;
    const void *key;
    size_t key_bytes;
    uint64_t entries;
    snprintf(named, sizeof named, "%s,namespace=other", url);
    CHECK(haypile_open(named, &other) == HAYPILE_OK);
    CHECK(set(cache, "mine", "outer") == HAYPILE_OK);
    CHECK(has(other, "mine", NULL));
    CHECK(set(other, "mine", "inner") == HAYPILE_OK);
    CHECK(has(cache, "mine", "outer") && has(other, "mine", "inner"));
    CHECK(haypile_list_keys(other, &keys) == HAYPILE_OK);
    CHECK(haypile_next_key(keys, &key, &key_bytes) == HAYPILE_OK);
    CHECK(key_bytes == 4 && memcmp(key, "mine", 4) == 0);
    CHECK(haypile_next_key(keys, &key, &key_bytes) == HAYPILE_END);
    haypile_free_keys(keys);
    CHECK(haypile_clear(other) == HAYPILE_OK);
    CHECK(haypile_len(other, &entries) == HAYPILE_OK && entries == 0);
    CHECK(has(cache, "mine", "outer") && has(other, "mine", NULL));
    CHECK(haypile_close(other) == HAYPILE_OK);
}

void test_keys(haypile_cache *cache, const char *url)
{
    CHECK(set(cache, "found", "v") == HAYPILE_OK);
    test_concurrent_deletions(cache);
    CHECK(has(cache, "found", NULL));
    test_errors(cache);
    if (strncmp(url, "file:", 5) == 0)
        test_a_namespace(cache, url);
}
