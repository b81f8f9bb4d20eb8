// Compiled as C99 and as C++17 with what pkg-config prints.

#include <haypile.h>

#include <stdio.h>
#include <string.h>

static int compute(void *context, haypile_output *output)
{
    return (int)haypile_output_append(output, context, 5);
}

int main(int argc, char **argv)
{
    char text[] = "value";
    haypile_cache *cache;
    haypile_freshness freshness;
    haypile_stats stats;
    void *value;
    size_t value_bytes;
    if (argc != 2 || strcmp(argv[1], haypile_version()) != 0)
        return 1;
    memset(&freshness, 0, sizeof freshness);
    freshness.fresh_ms = 60000;
    if (haypile_open("memory:size=1MiB -> memory:size=4MiB", &cache) != HAYPILE_OK) {
        fprintf(stderr, "%s\n", haypile_last_error());
        return 1;
    }
    if (haypile_get_or_refresh(cache, "key", 3, &freshness, sizeof freshness, compute, text, &value,
                               &value_bytes) != HAYPILE_OK)
        return 1;
    if (value_bytes != 5 || memcmp(value, text, 5) != 0)
        return 1;
    haypile_free(value);
    if (haypile_get_stats(cache, &stats, sizeof stats) != HAYPILE_OK || stats.entries == 0)
        return 1;
    return haypile_close(cache) == HAYPILE_OK ? 0 : 1;
}
