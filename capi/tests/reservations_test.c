// Values that are written into their place.

#include "test.h"

static haypile_reservation *reserve(haypile_cache *cache, int32_t mode, const char *value)
{
    haypile_reservation *reservation;
    void *buffer;
    size_t value_bytes = strlen(value);
    CHECK(haypile_reserve(cache, "reserved", 8, value_bytes, 60000, mode, 0, &reservation,
                          &buffer) == HAYPILE_OK);
    CHECK(buffer != NULL);
    memcpy(buffer, value, value_bytes);
    return reservation;
}

void test_reservations(haypile_cache *cache)
{
    haypile_reservation *reservation = reserve(cache, HAYPILE_MODE_SET, "first");
    void *buffer = cache;
    CHECK(has(cache, "reserved", NULL));
    CHECK(haypile_commit(reservation) == HAYPILE_OK);
    CHECK(has(cache, "reserved", "first"));
    CHECK(haypile_commit(reserve(cache, HAYPILE_MODE_ADD, "second")) == HAYPILE_NOT_STORED);
    haypile_cancel(reserve(cache, HAYPILE_MODE_SET, "third"));
    haypile_cancel(NULL);
    CHECK(has(cache, "reserved", "first"));
    reservation = reserve(cache, HAYPILE_MODE_CAS, "fourth");
    haypile_delete(cache, "reserved", 8);
    CHECK(haypile_commit(reservation) == HAYPILE_MISS);
    CHECK(haypile_commit(reserve(cache, HAYPILE_MODE_SET, "")) == HAYPILE_OK);
    CHECK(has(cache, "reserved", ""));

    CHECK(haypile_commit(NULL) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_reserve(cache, "k", 1, 1, 60000, 9, 0, &reservation, &buffer) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(error_says("unknown mode 9") && reservation == NULL && buffer == NULL);
    CHECK(haypile_reserve(cache, "k", 1, 1, 0, 0, 0, &reservation, &buffer) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_reserve(cache, "k", 1, (size_t)1 << 40, 60000, 0, 0, &reservation, &buffer) ==
          HAYPILE_ERROR_VALUE_TOO_LARGE);
    CHECK(haypile_reserve(cache, NULL, 1, 1, 60000, 0, 0, &reservation, &buffer) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_reserve(NULL, "k", 1, 1, 60000, 0, 0, &reservation, &buffer) ==
          HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_reserve(cache, "k", 1, 1, 60000, 0, 0, NULL, &buffer) == HAYPILE_ERROR_ARGUMENT);
    CHECK(haypile_reserve(cache, "k", 1, 1, 60000, 0, 0, &reservation, NULL) ==
          HAYPILE_ERROR_ARGUMENT);
}
