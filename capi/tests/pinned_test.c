// Values that are read in place, and stay.

#include "test.h"

typedef haypile_status get_pinned(const haypile_cache *cache, const void *key, size_t key_bytes,
                                  haypile_pinned **out_pinned, const void **out_value,
                                  size_t *out_value_bytes);

enum { LARGE = 40000 };

static int is_all(const void *value, size_t value_bytes, int byte)
{
    const unsigned char *bytes = value;
    for (size_t i = 0; i < value_bytes; i++)
        if (bytes[i] != byte)
            return 0;
    return value_bytes == LARGE;
}

static void test_a_value_that_stays(haypile_cache *cache, get_pinned *get)
{
    static unsigned char large[LARGE];
    haypile_pinned *pinned;
    const void *value;
    size_t value_bytes;
    haypile_hit hit;
    memset(large, 'a', LARGE);
    CHECK(haypile_set(cache, "pinned", 6, large, LARGE, 60000) == HAYPILE_OK);
    CHECK(get(cache, "pinned", 6, &pinned, &value, &value_bytes) == HAYPILE_OK);
    CHECK(is_all(value, value_bytes, 'a'));
    CHECK(haypile_pinned_hit(pinned, &hit, sizeof hit) == HAYPILE_OK);
    CHECK(hit.has_version == 1 && hit.expires_in_ms > 0 && hit.expires_in_ms <= 60000);

    memset(large, 'b', LARGE);
    CHECK(haypile_cas(cache, "pinned", 6, large, LARGE, 60000, hit.version) == HAYPILE_OK);
    CHECK(is_all(value, value_bytes, 'a'));
    // Writes enough to reuse all of the cache's room.
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "filler %d", i);
        CHECK(haypile_set(cache, key, strlen(key), large, LARGE, 60000) == HAYPILE_OK);
    }
    CHECK(is_all(value, value_bytes, 'a'));
    haypile_delete(cache, "pinned", 6);
    CHECK(is_all(value, value_bytes, 'a'));
    haypile_unpin(pinned);

    CHECK(set(cache, "short", "") == HAYPILE_OK);
    CHECK(get(cache, "short", 5, &pinned, &value, &value_bytes) == HAYPILE_OK);
    CHECK(value != NULL && value_bytes == 0);
    haypile_unpin(pinned);
    CHECK(get(cache, "pinned", 6, &pinned, &value, &value_bytes) == HAYPILE_MISS);
    CHECK(pinned == NULL && value == NULL && value_bytes == 0);
}

static void test_errors(haypile_cache *cache, get_pinned *get)
{
    haypile_pinned *pinned;
    const void *value = cache;
    size_t value_bytes = 99;
    CHECK(get(cache, "k", 1, NULL, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(value == NULL && value_bytes == 0);
    CHECK(get(cache, "k", 1, &pinned, NULL, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(get(cache, "k", 1, &pinned, &value, NULL) == HAYPILE_ERROR_ARGUMENT && pinned == NULL);
    CHECK(get(NULL, "k", 1, &pinned, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(get(cache, NULL, 1, &pinned, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
}

void test_pinned(haypile_cache *cache, const char *url)
{
    haypile_pinned *pinned;
    const void *value;
    size_t value_bytes;
    haypile_hit hit;
    haypile_cache *closed;
    test_a_value_that_stays(cache, haypile_get_pinned);
    test_a_value_that_stays(cache, haypile_get_in_place);
    test_errors(cache, haypile_get_pinned);
    test_errors(cache, haypile_get_in_place);
    CHECK(haypile_pinned_hit(NULL, &hit, sizeof hit) == HAYPILE_ERROR_ARGUMENT);
    haypile_unpin(NULL);

    // It outlives its cache.
    CHECK(haypile_open(url, &closed) == HAYPILE_OK);
    CHECK(set(closed, "outlives", "value") == HAYPILE_OK);
    CHECK(haypile_get_in_place(closed, "outlives", 8, &pinned, &value, &value_bytes) == HAYPILE_OK);
    CHECK(haypile_close(closed) == HAYPILE_OK);
    CHECK(value_bytes == 5 && memcmp(value, "value", 5) == 0);
    CHECK(haypile_pinned_hit(pinned, NULL, sizeof hit) == HAYPILE_ERROR_ARGUMENT);
    haypile_unpin(pinned);
}
