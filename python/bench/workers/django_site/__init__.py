"""A site with Django's cache, whose settings are an element of CACHES."""

from sites import Cache, Site


def locmem(_limits):
    return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}


def locmem_of_capacity(limits):
    return {**locmem(limits), "OPTIONS": {"MAX_ENTRIES": limits.entries_of_worker}}


def files(limits):
    return {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": limits.files,
        "OPTIONS": {"MAX_ENTRIES": limits.entries},
    }


def diskcache(limits):
    """As in https://grantjenks.com/docs/diskcache/tutorial.html#djangocache."""
    return {
        "BACKEND": "diskcache.DjangoCache",
        "LOCATION": limits.files,
        "SHARDS": 8,
        "DATABASE_TIMEOUT": 0.010,
        "OPTIONS": {"size_limit": limits.bytes},
    }


def redis(limits):
    return {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": f"unix://{limits.redis_socket}"}


def haypile(limits):
    return {
        "BACKEND": "haypile.django.HaypileCache",
        "LOCATION": f"file:{limits.files}/site.haypile,size={limits.mib}MiB",
    }


SITE = Site(
    name="django",
    packages=("django",),
    caches={
        # Django's default: 300 entries.
        "locmem-300": Cache(locmem),
        "locmem": Cache(locmem_of_capacity),
        "files": Cache(files),
        "diskcache": Cache(diskcache, packages=("diskcache",)),
        "redis": Cache(redis, packages=("redis", "hiredis"), needs_redis_server=True),
        "haypile": Cache(haypile, packages=("haypile",)),
    },
)
