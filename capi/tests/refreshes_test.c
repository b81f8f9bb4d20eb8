// Computing with early refresh, stale values and a limit on waiting.

#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

struct computation {
    const char *value;
    int answer;
    int calls;
};

static int compute(void *context, haypile_output *output)
{
    struct computation *computation = context;
    computation->calls++;
    CHECK(haypile_output_append(output, computation->value, strlen(computation->value)) ==
          HAYPILE_OK);
    return computation->answer;
}

static int refreshes(haypile_cache *cache, const char *key, haypile_freshness freshness,
                     struct computation *computation, const char *expected)
{
    void *value;
    size_t value_bytes;
    CHECK(haypile_get_or_refresh(cache, key, strlen(key), &freshness, sizeof freshness, compute,
                                 computation, &value, &value_bytes) == HAYPILE_OK);
    int same = value_bytes == strlen(expected) && memcmp(value, expected, value_bytes) == 0;
    haypile_free(value);
    return same;
}

static void test_early_and_stale(haypile_cache *cache)
{
    struct computation computation = {"one", 0, 0};
    // Due at once.
    const haypile_freshness early = {.fresh_ms = 60000, .early_ms = 60000};
    const haypile_freshness late = {.fresh_ms = 60000};
    CHECK(refreshes(cache, "early", early, &computation, "one") && computation.calls == 1);
    CHECK(refreshes(cache, "early", late, &computation, "one") && computation.calls == 1);
    computation.value = "two";
    CHECK(refreshes(cache, "early", early, &computation, "two") && computation.calls == 2);

    // Stale soon, and served because the next value cannot be computed.
    const haypile_freshness stale = {.fresh_ms = 1, .stale_ms = 60000};
    haypile_stats before, after;
    CHECK(refreshes(cache, "stale", stale, &computation, "two") && computation.calls == 3);
    sleep_ms(5);
    computation = (struct computation){"three", 7, 0};
    CHECK(haypile_get_stats(cache, &before, sizeof before) == HAYPILE_OK);
    CHECK(refreshes(cache, "stale", stale, &computation, "two") && computation.calls == 1);
    CHECK(haypile_get_stats(cache, &after, sizeof after) == HAYPILE_OK);
    CHECK(after.failed_refreshes == before.failed_refreshes + 1);
    computation.answer = 0;
    CHECK(refreshes(cache, "stale", stale, &computation, "three") && computation.calls == 2);

    // The TTLs that are not times.
    const haypile_freshness never = {.fresh_ms = HAYPILE_TTL_NEVER};
    CHECK(refreshes(cache, "never", never, &computation, "three") && computation.calls == 3);
    CHECK(refreshes(cache, "never", never, &computation, "three") && computation.calls == 3);
}

static haypile_status refused(haypile_cache *cache, haypile_freshness freshness)
{
    struct computation computation = {"v", 0, 0};
    void *value = &computation;
    size_t value_bytes = 99;
    haypile_status status =
        haypile_get_or_refresh(cache, "refused", 7, &freshness, sizeof freshness, compute,
                               &computation, &value, &value_bytes);
    CHECK(value == NULL && value_bytes == 0 && computation.calls == 0);
    return status;
}

static void test_errors(haypile_cache *cache)
{
    struct computation computation = {"v", 7, 0};
    haypile_freshness times = {.fresh_ms = 60000};
    struct {
        haypile_freshness known;
        uint64_t later;
    } newer = {times, 0};
    void *value;
    size_t value_bytes;
    CHECK(refused(cache, (haypile_freshness){0}) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("TTL of zero"));
    CHECK(refused(cache, (haypile_freshness){.fresh_ms = -3}) == HAYPILE_ERROR_ARGUMENT);
    CHECK(refused(cache, (haypile_freshness){.fresh_ms = 1, .early_ms = -1}) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("early_ms is -1"));
    CHECK(refused(cache, (haypile_freshness){.fresh_ms = 1, .stale_ms = -1}) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(refused(cache, (haypile_freshness){.fresh_ms = 1, .wait_ms = -1}) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(refused(cache, (haypile_freshness){.fresh_ms = HAYPILE_TTL_NEVER, .stale_ms = 1}) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_or_refresh(cache, "fails", 5, &times, sizeof times, compute, &computation,
                                 &value, &value_bytes) == HAYPILE_ERROR_COMPUTE);
    CHECK(error_says("returned 7") && has(cache, "fails", NULL));
    CHECK(haypile_get_or_refresh(cache, "k", 1, NULL, sizeof times, compute, &computation, &value,
                                 &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_or_refresh(cache, "k", 1, NULL, 0, compute, &computation, &value,
                                 &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("freshness is NULL"));
    CHECK(haypile_get_or_refresh(cache, "k", 1, &times, sizeof times, NULL, NULL, &value,
                                 &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_or_refresh(NULL, "k", 1, &times, sizeof times, compute, &computation, &value,
                                 &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_or_refresh(cache, "k", 1, &times, sizeof times, compute, &computation, NULL,
                                 &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    // Sizes that no version has, and a program of a newer header.
    computation.answer = 0;
    CHECK(haypile_get_or_refresh(cache, "older", 5, &times, sizeof times - 1, compute, &computation,
                                 &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("the size of freshness") && value == NULL);
    CHECK(haypile_get_or_refresh(cache, "older", 5, &times, 0, compute, &computation, &value,
                                 &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("the size of freshness") && value == NULL);
    CHECK(haypile_get_or_refresh(cache, "newer", 5, &newer.known, sizeof newer, compute,
                                 &computation, &value, &value_bytes) == HAYPILE_OK);
    haypile_free(value);
    newer.later = 1;
    CHECK(haypile_get_or_refresh(cache, "newer", 5, &newer.known, sizeof newer, compute,
                                 &computation, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("does not know"));
}

struct slow {
    haypile_cache *cache;
    sem_t computes, may_end;
};

static int compute_slowly(void *context, haypile_output *output)
{
    struct slow *slow = context;
    sem_post(&slow->computes);
    sem_wait(&slow->may_end);
    return haypile_output_append(output, "slow", 4);
}

static void *get_slowly(void *context)
{
    struct slow *slow = context;
    void *value;
    size_t value_bytes;
    CHECK(haypile_get_or_compute(slow->cache, "waits", 5, 60000, compute_slowly, slow, &value,
                                 &value_bytes) == HAYPILE_OK);
    CHECK(value_bytes == 4);
    haypile_free(value);
    return NULL;
}

static void test_a_limited_wait(haypile_cache *cache)
{
    struct slow slow = {.cache = cache};
    struct computation computation = {"own", 0, 0};
    const haypile_freshness freshness = {.fresh_ms = 60000, .wait_ms = 100};
    pthread_t thread;
    void *value = &slow;
    size_t value_bytes = 99;
    struct timespec begin, end;
    CHECK(sem_init(&slow.computes, 0, 0) == 0 && sem_init(&slow.may_end, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, get_slowly, &slow) == 0);
    sem_wait(&slow.computes);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    CHECK(haypile_get_or_refresh(cache, "waits", 5, &freshness, sizeof freshness, compute,
                                 &computation, &value, &value_bytes) == HAYPILE_PENDING);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double waited = (double)(end.tv_sec - begin.tv_sec) +
                          (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    CHECK(waited >= 0.1 && waited < 20);
    CHECK(value == NULL && value_bytes == 0 && computation.calls == 0);
    sem_post(&slow.may_end);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(refreshes(cache, "waits", freshness, &computation, "slow") && computation.calls == 0);
    sem_destroy(&slow.computes);
    sem_destroy(&slow.may_end);
}

static void keep_job(void *context, haypile_job *job)
{
    haypile_job **kept = context;
    CHECK(*kept == NULL);
    *kept = job;
}

static void *run_job(void *context)
{
    CHECK(haypile_run_job(context) == HAYPILE_OK);
    return NULL;
}

static int refreshes_in(haypile_cache *cache, haypile_job **job, struct computation *computation,
                        const char *expected)
{
    const haypile_freshness freshness = {.fresh_ms = 60000, .early_ms = 60000};
    void *value;
    size_t value_bytes;
    CHECK(haypile_get_or_refresh_in(cache, "job", 3, &freshness, sizeof freshness, keep_job, job,
                                    compute, computation, &value, &value_bytes) == HAYPILE_OK);
    int same = value_bytes == strlen(expected) && memcmp(value, expected, value_bytes) == 0;
    haypile_free(value);
    return same;
}

static void test_jobs(haypile_cache *cache)
{
    struct computation computation = {"one", 0, 0};
    haypile_job *job = NULL;
    pthread_t thread;
    CHECK(refreshes_in(cache, &job, &computation, "one") && job == NULL && computation.calls == 1);
    computation.value = "two";
    CHECK(refreshes_in(cache, &job, &computation, "one") && job != NULL && computation.calls == 1);
    // One job at a time.
    haypile_job *other = NULL;
    CHECK(refreshes_in(cache, &other, &computation, "one") && other == NULL);
    CHECK(pthread_create(&thread, NULL, run_job, job) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(computation.calls == 2 && has(cache, "job", "two"));

    job = NULL;
    CHECK(refreshes_in(cache, &job, &computation, "two") && job != NULL);
    haypile_drop_job(job);
    haypile_drop_job(NULL);
    CHECK(computation.calls == 2 && has(cache, "job", "two"));
    // A job whose key was written in the meantime does nothing.
    job = NULL;
    CHECK(refreshes_in(cache, &job, &computation, "two") && job != NULL);
    CHECK(set(cache, "job", "written") == HAYPILE_OK);
    CHECK(haypile_run_job(job) == HAYPILE_OK);
    CHECK(computation.calls == 2 && has(cache, "job", "written"));

    const haypile_freshness never = {.fresh_ms = HAYPILE_TTL_NEVER}, minute = {.fresh_ms = 60000};
    void *value;
    size_t value_bytes;
    CHECK(haypile_run_job(NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_or_refresh_in(cache, "job", 3, &never, sizeof never, keep_job, &job, compute,
                                    &computation, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_or_refresh_in(cache, "job", 3, &minute, sizeof minute, NULL, NULL, compute,
                                    &computation, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("executor is NULL"));
    CHECK(haypile_get_or_refresh_in(cache, "job", 3, &minute, sizeof minute, keep_job, &job, NULL,
                                    NULL, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_get_or_refresh_in(NULL, "job", 3, &minute, sizeof minute, keep_job, &job, compute,
                                    &computation, &value, &value_bytes) == HAYPILE_ERROR_ARGUMENT);
}

void test_refreshes(haypile_cache *cache)
{
    test_early_and_stale(cache);
    test_errors(cache);
    test_a_limited_wait(cache);
    test_jobs(cache);
}
