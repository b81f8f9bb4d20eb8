// Entries that are invalidated together.

#include "test.h"

static haypile_status store(haypile_cache *cache, const char *key, const char *group, const haypile_lease *lease)
{
    haypile_group groups[] = {{group, strlen(group)}, {"all", 3}};
    return haypile_set_in_groups(cache, key, strlen(key), "value", 5, HAYPILE_TTL_NEVER, groups, 2, lease);
}

struct computation {
    haypile_cache *cache;
    int calls;
    int invalidates;
};

static int compute(void *context, haypile_output *output)
{
    struct computation *computation = context;
    computation->calls++;
    if (computation->invalidates) {
        CHECK(haypile_invalidate(computation->cache, "user:1", 6) == HAYPILE_OK);
    }
    return haypile_output_append(output, "computed", 8) == HAYPILE_OK ? 0 : 1;
}

static haypile_status get_or_compute(struct computation *computation)
{
    haypile_group groups[] = {{"user:1", 6}, {"all", 3}};
    void *value = NULL;
    size_t value_bytes = 0;
    haypile_status status = haypile_get_or_compute_in_groups(computation->cache, "grouped", 7, HAYPILE_TTL_NEVER, groups, 2,
                                                             compute, computation, &value, &value_bytes);
    CHECK(status == HAYPILE_OK && value_bytes == 8 && memcmp(value, "computed", 8) == 0);
    haypile_free(value);
    return status;
}

static void test_computing(haypile_cache *cache)
{
    struct computation computation = {cache, 0, 0};
    for (int i = 0; i < 2; i++) {
        get_or_compute(&computation);
    }
    CHECK(computation.calls == 1 && has(cache, "grouped", "computed"));
    CHECK(haypile_invalidate(cache, "all", 3) == HAYPILE_OK);
    CHECK(has(cache, "grouped", NULL));

    // A value of before an invalidation is returned to the caller who asked before it, and not stored.
    computation.invalidates = 1;
    get_or_compute(&computation);
    CHECK(computation.calls == 2 && has(cache, "grouped", NULL));
    computation.invalidates = 0;
    get_or_compute(&computation);
    CHECK(computation.calls == 3 && has(cache, "grouped", "computed"));
    CHECK(haypile_delete(cache, "grouped", 7) == HAYPILE_OK);

    void *value = cache;
    size_t value_bytes = 99;
    CHECK(haypile_get_or_compute_in_groups(cache, "grouped", 7, HAYPILE_TTL_NEVER, NULL, 1, compute, &computation, &value,
                                           &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("groups is NULL") && value == NULL && value_bytes == 0);
    CHECK(haypile_get_or_compute_in_groups(cache, "grouped", 7, HAYPILE_TTL_NEVER, NULL, 0, NULL, &computation, &value,
                                           &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("compute is NULL"));
    haypile_group nameless[] = {{"", 0}};
    CHECK(haypile_get_or_compute_in_groups(cache, "grouped", 7, HAYPILE_TTL_NEVER, nameless, 1, compute, &computation, &value,
                                           &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("1 to 250 bytes") && computation.calls == 3);
}

void test_groups(haypile_cache *cache)
{
    test_computing(cache);

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
