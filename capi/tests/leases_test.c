// Writes that are refused if the key has changed since.

#include "test.h"

static haypile_status store(haypile_cache *cache, const char *value, const haypile_lease *lease)
{
    return haypile_set_leased(cache, "leased", 6, value, strlen(value), HAYPILE_TTL_NEVER, lease);
}

void test_leases(haypile_cache *cache)
{
    haypile_lease lease, other;
    memset(&lease, 0x55, sizeof lease);
    CHECK(store(cache, "forged", &lease) == HAYPILE_NOT_STORED);
    CHECK(haypile_get_lease(cache, "leased", 6, &lease) == HAYPILE_OK);
    CHECK(store(cache, "one", &lease) == HAYPILE_OK);
    CHECK(has(cache, "leased", "one"));
    CHECK(store(cache, "two", &lease) == HAYPILE_NOT_STORED);
    CHECK(has(cache, "leased", "one"));

    CHECK(haypile_get_lease(cache, "leased", 6, &lease) == HAYPILE_OK);
    CHECK(haypile_delete(cache, "leased", 6) == HAYPILE_OK);
    CHECK(store(cache, "two", &lease) == HAYPILE_NOT_STORED);
    CHECK(has(cache, "leased", NULL));

    // A key that is absent may be deleted as well: somebody may be computing it.
    CHECK(haypile_get_lease(cache, "leased", 6, &lease) == HAYPILE_OK);
    CHECK(haypile_get_lease(cache, "other", 5, &other) == HAYPILE_OK);
    CHECK(haypile_delete(cache, "leased", 6) == HAYPILE_MISS);
    CHECK(store(cache, "two", &lease) == HAYPILE_NOT_STORED);
    CHECK(store(cache, "two", &other) == HAYPILE_NOT_STORED);
    CHECK(has(cache, "leased", NULL));
    haypile_stats stats;
    CHECK(haypile_get_stats(cache, &stats, sizeof stats) == HAYPILE_OK);
    CHECK(stats.revoked >= 5);

    CHECK(haypile_get_lease(cache, "leased", 6, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("out_lease is NULL"));
    CHECK(haypile_get_lease(NULL, "leased", 6, &lease) == HAYPILE_ERROR_ARGUMENT);
    CHECK(lease.bytes[0] == 0 && lease.bytes[31] == 0);
    CHECK(store(cache, "two", NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("lease is NULL"));
    CHECK(store(NULL, "two", &lease) == HAYPILE_ERROR_ARGUMENT);
}
