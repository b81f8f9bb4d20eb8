"""A site with Flask-Caching, whose settings are keys of Flask's configuration."""

from sites import Cache, Site

# The site answers only the script, over a unix socket.
SECRET_KEY = "not a secret: this key signs nothing outside of a measurement"


def simple(_limits):
    return {"CACHE_TYPE": "SimpleCache"}


def simple_of_capacity(limits):
    return {**simple(limits), "CACHE_THRESHOLD": limits.entries_of_worker}


def files(limits):
    return {"CACHE_TYPE": "FileSystemCache", "CACHE_DIR": limits.files, "CACHE_THRESHOLD": limits.entries}


def redis(limits):
    return {"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": f"unix://{limits.redis_socket}"}


def haypile(limits):
    return {
        "CACHE_TYPE": "haypile.cachelib.HaypileCache",
        "CACHE_OPTIONS": {
            "url": f"file:{limits.files}/site.haypile,size={limits.mib}MiB",
            "sign": SECRET_KEY,
        },
    }


SITE = Site(
    name="flask",
    packages=("flask", "flask-caching", "cachelib"),
    caches={
        # Flask-Caching's default: 500 entries.
        "simple-500": Cache(simple),
        "simple": Cache(simple_of_capacity),
        # When it is full, each write reads the heads of all files, twice.
        "files": Cache(files, slow=True),
        "redis": Cache(redis, packages=("redis", "hiredis"), needs_redis_server=True),
        "haypile": Cache(haypile, packages=("haypile",)),
    },
)
