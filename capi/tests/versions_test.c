// Conditional writes and deletions by version.

#include "test.h"

static uint64_t version_of(haypile_cache *cache, const char *key, const char *expected)
{
    void *value;
    size_t value_bytes;
    uint64_t version;
    CHECK(haypile_get_versioned(cache, key, strlen(key), &value, &value_bytes, &version) ==
          HAYPILE_OK);
    CHECK(value_bytes == strlen(expected) && memcmp(value, expected, value_bytes) == 0);
    haypile_free(value);
    return version;
}

static void test_unchanged_values(haypile_cache *cache)
{
    void *value = cache;
    size_t value_bytes = 99;
    uint64_t version = 0, other = 99;
    CHECK(haypile_get_if_changed(cache, "kept", 4, version, &value, &value_bytes, &version) == HAYPILE_MISS);
    CHECK(value == NULL && value_bytes == 0 && version == 0);
    CHECK(set(cache, "kept", "one") == HAYPILE_OK);
    CHECK(haypile_get_if_changed(cache, "kept", 4, version, &value, &value_bytes, &version) == HAYPILE_OK);
    CHECK(value_bytes == 3 && memcmp(value, "one", 3) == 0);
    haypile_free(value);
    CHECK(version == version_of(cache, "kept", "one"));
    CHECK(haypile_get_if_changed(cache, "kept", 4, version, &value, &value_bytes, &other) == HAYPILE_UNCHANGED);
    CHECK(value == NULL && value_bytes == 0 && other == version);
    // Even a write of the same bytes changes it.
    CHECK(set(cache, "kept", "one") == HAYPILE_OK);
    CHECK(haypile_get_if_changed(cache, "kept", 4, version, &value, &value_bytes, &version) == HAYPILE_OK);
    CHECK(value_bytes == 3 && version != other);
    haypile_free(value);
    CHECK(haypile_delete(cache, "kept", 4) == HAYPILE_OK);
    CHECK(haypile_get_if_changed(cache, "kept", 4, version, &value, &value_bytes, &version) == HAYPILE_MISS);
    CHECK(version == 0);

    CHECK(haypile_get_if_changed(cache, "kept", 4, 1, &value, &value_bytes, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("out_version is NULL"));
    CHECK(haypile_get_if_changed(cache, "kept", 4, 1, NULL, &value_bytes, &other) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_if_changed(cache, NULL, 4, 1, &value, &value_bytes, &other) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_if_changed(NULL, "kept", 4, 1, &value, &value_bytes, &other) == HAYPILE_ERROR_ARGUMENT);
}

void test_versions(haypile_cache *cache)
{
    test_unchanged_values(cache);

    void *value = cache;
    size_t value_bytes = 99;
    uint64_t version = 99;
    CHECK(haypile_get_versioned(cache, "cas", 3, &value, &value_bytes, &version) == HAYPILE_MISS);
    CHECK(value == NULL && value_bytes == 0 && version == 0);
    CHECK(set(cache, "cas", "one") == HAYPILE_OK);
    version = version_of(cache, "cas", "one");

    // Won, and then lost with the same version: even a write of the same bytes changes it.
    CHECK(haypile_cas(cache, "cas", 3, "two", 3, HAYPILE_TTL_NEVER, version) == HAYPILE_OK);
    CHECK(haypile_cas(cache, "cas", 3, "six", 3, HAYPILE_TTL_NEVER, version) == HAYPILE_NOT_STORED);
    CHECK(has(cache, "cas", "two"));
    version = version_of(cache, "cas", "two");
    CHECK(set(cache, "cas", "two") == HAYPILE_OK);
    CHECK(haypile_cas(cache, "cas", 3, "six", 3, HAYPILE_TTL_NEVER, version) == HAYPILE_NOT_STORED);

    CHECK(haypile_delete_version(cache, "cas", 3, version) == HAYPILE_NOT_STORED);
    CHECK(has(cache, "cas", "two"));
    version = version_of(cache, "cas", "two");
    CHECK(haypile_delete_version(cache, "cas", 3, version) == HAYPILE_OK);
    CHECK(has(cache, "cas", NULL));
    CHECK(haypile_delete_version(cache, "cas", 3, version) == HAYPILE_NOT_STORED);
    CHECK(haypile_cas(cache, "cas", 3, "six", 3, HAYPILE_TTL_NEVER, version) == HAYPILE_MISS);
    CHECK(has(cache, "cas", NULL));

    CHECK(haypile_compare_and_delete(cache, "cas", 3, "", 0) == HAYPILE_NOT_STORED);
    CHECK(set(cache, "cas", "token") == HAYPILE_OK);
    CHECK(haypile_compare_and_delete(cache, "cas", 3, "tokem", 5) == HAYPILE_NOT_STORED);
    CHECK(haypile_compare_and_delete(cache, "cas", 3, "token", 4) == HAYPILE_NOT_STORED);
    CHECK(has(cache, "cas", "token"));
    CHECK(haypile_compare_and_delete(cache, "cas", 3, "token", 5) == HAYPILE_OK);
    CHECK(has(cache, "cas", NULL));
    CHECK(haypile_compare_and_delete(NULL, "cas", 3, "v", 1) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_compare_and_delete(cache, NULL, 3, "v", 1) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_compare_and_delete(cache, "cas", 3, NULL, 1) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("expected is NULL"));

    CHECK(haypile_cas(cache, "cas", 3, "v", 1, 0, version) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_cas(NULL, "cas", 3, "v", 1, 1000, version) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_cas(cache, NULL, 3, "v", 1, 1000, version) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_cas(cache, "cas", 3, NULL, 1, 1000, version) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_delete_version(NULL, "cas", 3, version) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_delete_version(cache, "cas", (size_t)-1, version) == HAYPILE_ERROR_ARGUMENT);
    value_bytes = 99;
    CHECK(haypile_get_versioned(cache, "cas", 3, &value, &value_bytes, NULL) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("out_version is NULL") && value_bytes == 0);
    CHECK(haypile_get_versioned(cache, "cas", 3, NULL, &value_bytes, &version) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_versioned(NULL, "cas", 3, &value, &value_bytes, &version) ==
          HAYPILE_ERROR_ARGUMENT);
}
