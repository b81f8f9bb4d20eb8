// Claims: computations between two calls.

#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

static haypile_status try_claim(haypile_cache *cache, haypile_claim **claim, void **value,
                                size_t *value_bytes)
{
    int64_t wait_ms;
    haypile_status status = haypile_try_claim(cache, "claimed", 7, HAYPILE_TTL_OF_CACHE, claim, value,
                                              value_bytes, &wait_ms);
    CHECK((status == HAYPILE_PENDING) == (wait_ms > 0));
    CHECK((status == HAYPILE_OK) == (*value != NULL));
    return status;
}

// A child that inherits a claim cannot end it.
static void test_inherited_claim(haypile_cache *cache, haypile_claim *claim)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(haypile_complete(claim, "child", 5, NULL, 0) == HAYPILE_ERROR_ARGUMENT);
        CHECK(error_says("parent of this process"));
        // The claim stays where it is, which a leak checker would report at the end of this process.
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(has(cache, "claimed", NULL));
}

void test_claims(haypile_cache *cache)
{
    haypile_claim *claim = NULL, *other = NULL;
    void *value;
    size_t value_bytes;
    haypile_delete(cache, "claimed", 7);

    // One computes, another waits and gets the value.
    CHECK(try_claim(cache, &claim, &value, &value_bytes) == HAYPILE_MISS && claim != NULL);
    CHECK(try_claim(cache, &other, &value, &value_bytes) == HAYPILE_PENDING && other != NULL);
    CHECK(try_claim(cache, &other, &value, &value_bytes) == HAYPILE_PENDING && other != NULL);
    test_inherited_claim(cache, claim);
    CHECK(haypile_complete(claim, "one", 3, NULL, 0) == HAYPILE_OK);
    CHECK(try_claim(cache, &other, &value, &value_bytes) == HAYPILE_OK && other == NULL);
    CHECK(value_bytes == 3 && memcmp(value, "one", 3) == 0);
    haypile_free(value);
    CHECK(has(cache, "claimed", "one"));

    // After a release, one of those who wait computes.
    CHECK(haypile_delete(cache, "claimed", 7) == HAYPILE_OK);
    claim = NULL;
    CHECK(try_claim(cache, &claim, &value, &value_bytes) == HAYPILE_MISS);
    CHECK(try_claim(cache, &other, &value, &value_bytes) == HAYPILE_PENDING);
    haypile_release(claim);
    CHECK(try_claim(cache, &other, &value, &value_bytes) == HAYPILE_MISS);
    // A key that has changed keeps what was written.
    CHECK(set(cache, "claimed", "written") == HAYPILE_OK);
    CHECK(haypile_complete(other, "late", 4, NULL, 0) == HAYPILE_OK);
    CHECK(has(cache, "claimed", "written"));
    CHECK(haypile_delete(cache, "claimed", 7) == HAYPILE_OK);

    // Whoever waits may give up. Whoever computes does not wait, and the reverse.
    claim = other = NULL;
    CHECK(try_claim(cache, &claim, &value, &value_bytes) == HAYPILE_MISS);
    CHECK(try_claim(cache, &other, &value, &value_bytes) == HAYPILE_PENDING);
    CHECK(haypile_complete(other, "no", 2, NULL, 0) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("claim waits for another caller"));
    CHECK(try_claim(cache, &claim, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT && claim == NULL);
    CHECK(error_says("does not wait"));
    CHECK(has(cache, "claimed", NULL));
    haypile_release(NULL);
    CHECK(haypile_complete(NULL, "no", 2, NULL, 0) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("claim is NULL"));

    // An error ends the claim: another caller computes.
    other = NULL;
    CHECK(try_claim(cache, &other, &value, &value_bytes) == HAYPILE_MISS);
    CHECK(haypile_complete(other, NULL, 2, NULL, 0) == HAYPILE_ERROR_ARGUMENT);
    other = NULL;
    CHECK(try_claim(cache, &other, &value, &value_bytes) == HAYPILE_MISS);
    haypile_group group = {"claims", 6};
    CHECK(haypile_complete(other, "grouped", 7, &group, 1) >= 0);
    CHECK(haypile_invalidate(cache, "claims", 6) != HAYPILE_OK || has(cache, "claimed", NULL));
    haypile_delete(cache, "claimed", 7);

    int64_t wait_ms;
    claim = NULL;
    CHECK(haypile_try_claim(cache, "claimed", 7, 0, &claim, &value, &value_bytes, &wait_ms) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_try_claim(cache, "claimed", 7, -1, NULL, &value, &value_bytes, &wait_ms) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_try_claim(cache, "claimed", 7, -1, &claim, &value, &value_bytes, NULL) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_try_claim(NULL, "claimed", 7, -1, &claim, &value, &value_bytes, &wait_ms) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(claim == NULL);
}
