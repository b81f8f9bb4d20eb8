// Operations on many keys, of which some fail.

#include "test.h"

static int holds(const haypile_values *values, size_t index, const char *expected)
{
    const void *value;
    size_t value_bytes;
    haypile_status status = haypile_values_at(values, index, &value, &value_bytes);
    if (expected == NULL)
        return status == HAYPILE_MISS && value == NULL && value_bytes == 0;
    return status == HAYPILE_OK && value != NULL && value_bytes == strlen(expected) &&
           memcmp(value, expected, value_bytes) == 0;
}

static void test_writing(haypile_cache *cache)
{
    static char long_key[65536];
    void *value;
    size_t value_bytes;
    uint64_t version;
    CHECK(set(cache, "many c", "old") == HAYPILE_OK);
    CHECK(haypile_get_versioned(cache, "many c", 6, &value, &value_bytes, &version) == HAYPILE_OK);
    haypile_free(value);
    const haypile_entry entries[] = {
        {"many a", 6, "1", 1, 60000, 0, HAYPILE_MODE_SET},
        {long_key, sizeof long_key, "2", 1, 60000, 0, HAYPILE_MODE_SET},
        {"many b", 6, NULL, 0, HAYPILE_TTL_NEVER, 0, HAYPILE_MODE_ADD},
        {NULL, 6, "4", 1, 60000, 0, HAYPILE_MODE_SET},
        {"many a", 6, "5", 1, 60000, 0, HAYPILE_MODE_ADD},
        {"many c", 6, "6", 1, 60000, version, HAYPILE_MODE_CAS},
        {"many c", 6, "7", 1, 60000, version, HAYPILE_MODE_CAS},
        {"many d", 6, "8", 1, 60000, version, HAYPILE_MODE_CAS},
        {"many d", 6, "9", 1, 60000, 0, HAYPILE_MODE_REPLACE},
        {"many d", 6, "10", 2, 0, 0, HAYPILE_MODE_SET},
        {"many d", 6, "11", 2, 60000, 0, 77},
        {"many e", 6, "12", 2, HAYPILE_TTL_OF_CACHE, 0, HAYPILE_MODE_SET},
    };
    const haypile_status expected[] = {
        HAYPILE_OK,         HAYPILE_ERROR_KEY_TOO_LONG, HAYPILE_OK,         HAYPILE_ERROR_ARGUMENT,
        HAYPILE_NOT_STORED, HAYPILE_OK,                 HAYPILE_NOT_STORED, HAYPILE_MISS,
        HAYPILE_NOT_STORED, HAYPILE_ERROR_ARGUMENT,     HAYPILE_ERROR_ARGUMENT, HAYPILE_OK,
    };
    enum { COUNT = sizeof entries / sizeof *entries };
    haypile_status statuses[COUNT];
    CHECK(haypile_set_many(cache, entries, COUNT, statuses) == HAYPILE_ERROR_KEY_TOO_LONG);
    CHECK(error_says("at index 1: ") && error_says("65535"));
    CHECK(memcmp(statuses, expected, sizeof expected) == 0);
    CHECK(has(cache, "many a", "1") && has(cache, "many b", "") && has(cache, "many c", "6"));
    CHECK(has(cache, "many d", NULL) && has(cache, "many e", "12"));

    // Without statuses, and a condition that does not hold is not an error.
    CHECK(haypile_set_many(cache, &entries[4], 1, NULL) == HAYPILE_OK);
    CHECK(haypile_set_many(cache, &entries[3], 1, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("at index 0: key is NULL"));
    CHECK(haypile_set_many(cache, NULL, 0, NULL) == HAYPILE_OK);
    // A whole call that fails leaves its status everywhere.
    CHECK(haypile_set_many(NULL, entries, COUNT, statuses) == HAYPILE_ERROR_ARGUMENT);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(statuses[i] == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_set_many(cache, NULL, COUNT, statuses) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_set_many(cache, entries, (size_t)-1, statuses) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("negative number"));
}

static void test_reading(haypile_cache *cache)
{
    static char long_key[65536];
    haypile_key keys[] = {{"many a", 6}, {"many d", 6}, {"many b", 6}, {"many a", 6}, {NULL, 0}};
    haypile_values *values;
    haypile_hit hit;
    haypile_delete(cache, NULL, 0);
    CHECK(haypile_get_many(cache, keys, 5, &values) == HAYPILE_OK);
    CHECK(holds(values, 0, "1") && holds(values, 1, NULL) && holds(values, 2, ""));
    CHECK(holds(values, 3, "1") && holds(values, 4, NULL));

    CHECK(haypile_values_hit(values, 0, &hit, sizeof hit) == HAYPILE_OK);
    CHECK(hit.has_version == 1 && hit.level == 0);
    CHECK(hit.expires_in_ms > 0 && hit.expires_in_ms <= 60000);
    CHECK(haypile_cas(cache, "many a", 6, "1", 1, 60000, hit.version) == HAYPILE_OK);
    CHECK(haypile_values_hit(values, 2, &hit, sizeof hit) == HAYPILE_OK);
    CHECK(hit.expires_in_ms == HAYPILE_TTL_NEVER);
    CHECK(haypile_values_hit(values, 1, &hit, sizeof hit) == HAYPILE_MISS);
    CHECK(hit.version == 0 && hit.has_version == 0);
    CHECK(haypile_values_hit(values, 5, &hit, sizeof hit) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_values_hit(values, 0, NULL, sizeof hit) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_values_hit(NULL, 0, &hit, sizeof hit) == HAYPILE_ERROR_ARGUMENT);
    // The values are the caller's: they stay.
    CHECK(set(cache, "many a", "changed") == HAYPILE_OK && holds(values, 0, "1"));

    const void *value;
    size_t value_bytes;
    CHECK(haypile_values_at(values, 5, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("no index 5 in 5 values"));
    CHECK(haypile_values_at(NULL, 0, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_values_at(values, 0, NULL, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_values_at(values, 0, &value, NULL) == HAYPILE_ERROR_ARGUMENT);
    haypile_free_values(values);
    haypile_free_values(NULL);

    CHECK(haypile_get_many(cache, NULL, 0, &values) == HAYPILE_OK);
    haypile_free_values(values);
    keys[3] = (haypile_key){long_key, sizeof long_key};
    CHECK(haypile_get_many(cache, keys, 5, &values) == HAYPILE_ERROR_KEY_TOO_LONG);
    CHECK(values == NULL);
    keys[3] = (haypile_key){NULL, 1};
    CHECK(haypile_get_many(cache, keys, 5, &values) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("at index 3: key is NULL"));
    CHECK(haypile_get_many(cache, keys, (size_t)-1, &values) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_many(cache, NULL, 5, &values) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_many(NULL, keys, 5, &values) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_many(cache, keys, 5, NULL) == HAYPILE_ERROR_ARGUMENT);
}

static void test_deleting(haypile_cache *cache)
{
    static char long_key[65536];
    const haypile_key keys[] = {{"many a", 6}, {NULL, 3}, {"many d", 6}, {long_key, 65536}, {"many b", 6}};
    haypile_status statuses[5];
    CHECK(haypile_delete_many(cache, keys, 5, statuses) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("at index 1: key is NULL"));
    CHECK(statuses[0] == HAYPILE_OK && statuses[1] == HAYPILE_ERROR_ARGUMENT);
    CHECK(statuses[2] == HAYPILE_MISS && statuses[3] == HAYPILE_ERROR_KEY_TOO_LONG);
    CHECK(statuses[4] == HAYPILE_OK);
    CHECK(has(cache, "many a", NULL) && has(cache, "many b", NULL) && has(cache, "many c", "6"));
    CHECK(haypile_delete_many(cache, keys, 1, NULL) == HAYPILE_OK);
    CHECK(haypile_delete_many(cache, NULL, 0, NULL) == HAYPILE_OK);
    CHECK(haypile_delete_many(NULL, keys, 5, statuses) == HAYPILE_ERROR_ARGUMENT);
    CHECK(statuses[0] == HAYPILE_ERROR_ARGUMENT && statuses[4] == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_delete_many(cache, NULL, 5, statuses) == HAYPILE_ERROR_ARGUMENT);
}

void test_many(haypile_cache *cache)
{
    test_writing(cache);
    test_reading(cache);
    test_deleting(cache);
}
