// Shared by the C tests: a check that ends the program, and values that are texts.

#ifndef HAYPILE_TEST_H
#define HAYPILE_TEST_H

#include "haypile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__,            \
                    #condition, haypile_last_error());                                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static inline haypile_status set(haypile_cache *cache, const char *key, const char *value)
{
    return haypile_set(cache, key, strlen(key), value, strlen(value), HAYPILE_TTL_OF_CACHE);
}

static inline int has(haypile_cache *cache, const char *key, const char *expected)
{
    void *value;
    size_t value_bytes;
    haypile_status status = haypile_get(cache, key, strlen(key), &value, &value_bytes);
    if (expected == NULL)
        return status == HAYPILE_MISS && value == NULL && value_bytes == 0;
    int same = status == HAYPILE_OK && value_bytes == strlen(expected) &&
               memcmp(value, expected, value_bytes) == 0;
    haypile_free(value);
    return same;
}

static inline int error_says(const char *part)
{
    return strstr(haypile_last_error(), part) != NULL;
}

void test_claims(haypile_cache *cache);
void test_groups(haypile_cache *cache);
void test_leases(haypile_cache *cache);
void test_versions(haypile_cache *cache);
void test_many(haypile_cache *cache);
void test_keys(haypile_cache *cache, const char *url);
void test_pinned(haypile_cache *cache, const char *url);
void test_reservations(haypile_cache *cache);
void test_structures(haypile_cache *cache);
void test_refreshes(haypile_cache *cache);
void test_whole_caches(haypile_cache *cache, const char *url);
void test_levels_and_servers(void);

#endif
