// Entries that are invalidated together.

#include "test.h"

static haypile_status store(haypile_cache *cache, const char *key, const char *group, const haypile_lease *lease)
{
    haypile_group groups[] = {{group, strlen(group)}, {"all", 3}};
    return haypile_set_in_groups(cache, key, strlen(key), "value", 5, HAYPILE_TTL_NEVER, groups, 2, lease);
}

void test_groups(haypile_cache *cache)
{
    CHECK(store(cache, "one", "user:1", NULL) == HAYPILE_OK);
    CHECK(store(cache, "two", "user:2", NULL) == HAYPILE_OK);
    CHECK(has(cache, "one", "value") && has(cache, "two", "value"));
    CHECK(haypile_invalidate(cache, "user:1", 6) == HAYPILE_OK);
    CHECK(has(cache, "one", NULL) && has(cache, "two", "value"));

    // What is written under a lease is of when that was granted.
    haypile_lease lease;
    CHECK(haypile_get_lease(cache, "one", 3, &lease) == HAYPILE_OK);
    CHECK(haypile_invalidate(cache, "user:1", 6) == HAYPILE_OK);
    CHECK(store(cache, "one", "user:1", &lease) == HAYPILE_NOT_STORED);
    CHECK(has(cache, "one", NULL));
    CHECK(haypile_get_lease(cache, "one", 3, &lease) == HAYPILE_OK);
    CHECK(store(cache, "one", "user:1", &lease) == HAYPILE_OK);
    CHECK(haypile_invalidate(cache, "all", 3) == HAYPILE_OK);
    CHECK(has(cache, "one", NULL) && has(cache, "two", NULL));

    // No groups are none.
    CHECK(haypile_set_in_groups(cache, "one", 3, "value", 5, HAYPILE_TTL_NEVER, NULL, 0, NULL) == HAYPILE_OK);
    CHECK(haypile_invalidate(cache, "all", 3) == HAYPILE_OK);
    CHECK(has(cache, "one", "value"));
    CHECK(haypile_delete(cache, "one", 3) == HAYPILE_OK);

    CHECK(store(cache, "one", "", NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("1 to 250 bytes"));
    CHECK(haypile_invalidate(cache, "", 0) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_invalidate(NULL, "all", 3) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_invalidate(cache, NULL, 3) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("group is NULL"));
    CHECK(haypile_set_in_groups(cache, "one", 3, "value", 5, HAYPILE_TTL_NEVER, NULL, 2, NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("groups is NULL"));
    CHECK(has(cache, "one", NULL));
}
