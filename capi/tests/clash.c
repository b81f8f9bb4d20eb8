// A program that has names which are also in the libraries that Haypile is made of: they are its own, and
// Haypile uses its own.

#include "test.h"

static int calls;

#define OWN(name)                                                                                  \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return ++calls;                                                                            \
    }

OWN(ZSTD_compress)
OWN(ZSTD_compress2)
OWN(ZSTD_compressCCtx)
OWN(ZSTD_createCCtx)
OWN(ZSTD_createDCtx)
OWN(ZSTD_decompress)
OWN(ZSTD_decompressDCtx)
OWN(ZSTD_isError)
OWN(HUF_decompress1X1_DCtx_wksp)
OWN(FSE_isError)
OWN(XXH64)
OWN(rust_eh_personality)

int main(void)
{
    static char text[20000];
    haypile_cache *cache;
    void *value;
    size_t value_bytes;
    uint64_t bytes;
    memset(text, 'a', sizeof text);
    CHECK(haypile_open("memory:size=4MiB,compress=zstd", &cache) == HAYPILE_OK);
    CHECK(haypile_set(cache, "key", 3, text, sizeof text, HAYPILE_TTL_NEVER) == HAYPILE_OK);
    CHECK(haypile_bytes(cache, &bytes) == HAYPILE_OK && bytes > 0 && bytes < 1000);
    CHECK(haypile_get(cache, "key", 3, &value, &value_bytes) == HAYPILE_OK);
    CHECK(value_bytes == sizeof text && memcmp(value, text, sizeof text) == 0);
    haypile_free(value);
    CHECK(haypile_close(cache) == HAYPILE_OK);
    CHECK(calls == 0 && ZSTD_compress() == 1);
    return 0;
}
