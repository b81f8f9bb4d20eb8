// Structures of programs whose header is older or newer than the library.

#include "test.h"

#include <stddef.h>

enum { ROOM = 1600, LARGE = 1000, SEVEN = 7 };

struct objects {
    haypile_cache *cache;
    haypile_pinned *pinned;
    haypile_values *values;
};

typedef haypile_status fill(const struct objects *of, void *out, size_t bytes);

static haypile_status stats(const struct objects *of, void *out, size_t bytes)
{
    return haypile_get_stats(of->cache, out, bytes);
}

static haypile_status first_level(const struct objects *of, void *out, size_t bytes)
{
    return haypile_get_level_stats(of->cache, 0, out, bytes);
}

static haypile_status no_level(const struct objects *of, void *out, size_t bytes)
{
    return haypile_get_level_stats(of->cache, 99, out, bytes);
}

static haypile_status limits(const struct objects *of, void *out, size_t bytes)
{
    return haypile_get_limits(of->cache, out, bytes);
}

static haypile_status pinned_hit(const struct objects *of, void *out, size_t bytes)
{
    return haypile_pinned_hit(of->pinned, out, bytes);
}

static haypile_status found(const struct objects *of, void *out, size_t bytes)
{
    return haypile_values_hit(of->values, 0, out, bytes);
}

static haypile_status not_found(const struct objects *of, void *out, size_t bytes)
{
    return haypile_values_hit(of->values, 1, out, bytes);
}

static haypile_status no_index(const struct objects *of, void *out, size_t bytes)
{
    return haypile_values_hit(of->values, 2, out, bytes);
}

static int is_all(const unsigned char *from, const unsigned char *end, int byte)
{
    for (; from < end; from++)
        if (*from != byte)
            return 0;
    return 1;
}

// Calls with a buffer of sevens. Nothing behind its `bytes` is written.
static haypile_status fill_sevens(fill *call, const struct objects *of, unsigned char *room,
                                  size_t bytes)
{
    memset(room, SEVEN, ROOM);
    haypile_status status = call(of, room, bytes);
    CHECK(is_all(room + bytes, room + ROOM, SEVEN));
    return status;
}

// first: the size of the structure in its first version; known: its size in the header.
static void test_sizes(fill *call, const struct objects *of, haypile_status expected, size_t first,
                       size_t known)
{
    static uint64_t aligned[2][ROOM / sizeof(uint64_t)];
    unsigned char *room = (unsigned char *)aligned[0], *exact = (unsigned char *)aligned[1];
    const size_t accepted[] = {first, known, known + sizeof(uint64_t), LARGE};
    const size_t refused[] = {0, 1, sizeof(void *), first - 1};
    CHECK(fill_sevens(call, of, exact, known) == expected);
    CHECK(is_all(exact, exact + known, 0) == (expected != HAYPILE_OK));
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        size_t common = accepted[i] < known ? accepted[i] : known;
        CHECK(fill_sevens(call, of, room, accepted[i]) == expected);
        CHECK(memcmp(room, exact, common) == 0);
        CHECK(is_all(room + common, room + accepted[i], 0));
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CHECK(fill_sevens(call, of, room, refused[i]) == HAYPILE_ERROR_ARGUMENT);
        CHECK(error_says("the size of out_") && error_says("pass the sizeof"));
        CHECK(is_all(room, room + refused[i], 0));
    }
}

void test_structures(haypile_cache *cache)
{
    const haypile_key keys[] = {{"sized", 5}, {"absent", 6}};
    const size_t first_stats = offsetof(haypile_stats, unreachable);
    const struct objects none = {NULL, NULL, NULL};
    struct objects all = {cache, NULL, NULL};
    const void *value;
    size_t value_bytes;
    // The properties of an entry that expires would change between two calls.
    CHECK(haypile_set(cache, "sized", 5, "v", 1, HAYPILE_TTL_NEVER) == HAYPILE_OK);
    CHECK(haypile_get_pinned(cache, "sized", 5, &all.pinned, &value, &value_bytes) == HAYPILE_OK);
    CHECK(haypile_get_many(cache, keys, 2, &all.values) == HAYPILE_OK);

    test_sizes(stats, &all, HAYPILE_OK, first_stats, sizeof(haypile_stats));
    test_sizes(first_level, &all, HAYPILE_OK, first_stats, sizeof(haypile_stats));
    test_sizes(limits, &all, HAYPILE_OK, sizeof(haypile_limits), sizeof(haypile_limits));
    test_sizes(pinned_hit, &all, HAYPILE_OK, sizeof(haypile_hit), sizeof(haypile_hit));
    test_sizes(found, &all, HAYPILE_OK, sizeof(haypile_hit), sizeof(haypile_hit));

    test_sizes(no_level, &all, HAYPILE_END, first_stats, sizeof(haypile_stats));
    test_sizes(not_found, &all, HAYPILE_MISS, sizeof(haypile_hit), sizeof(haypile_hit));
    test_sizes(no_index, &all, HAYPILE_ERROR_ARGUMENT, sizeof(haypile_hit), sizeof(haypile_hit));

    test_sizes(stats, &none, HAYPILE_ERROR_ARGUMENT, first_stats, sizeof(haypile_stats));
    test_sizes(first_level, &none, HAYPILE_ERROR_ARGUMENT, first_stats, sizeof(haypile_stats));
    test_sizes(limits, &none, HAYPILE_ERROR_ARGUMENT, sizeof(haypile_limits),
               sizeof(haypile_limits));
    test_sizes(pinned_hit, &none, HAYPILE_ERROR_ARGUMENT, sizeof(haypile_hit), sizeof(haypile_hit));
    test_sizes(found, &none, HAYPILE_ERROR_ARGUMENT, sizeof(haypile_hit), sizeof(haypile_hit));

    CHECK(stats(&all, NULL, 0) == HAYPILE_ERROR_ARGUMENT && error_says("out_stats is NULL"));
    haypile_free_values(all.values);
    haypile_unpin(all.pinned);
}
