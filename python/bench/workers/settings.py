"""Settings of the site that `scripts/bench-workers` measures; WORKERS_CACHES is Django's CACHES, in JSON."""

import json
import os

# The site answers only the script, over a unix socket.
SECRET_KEY = "not a secret: this key signs nothing outside of a measurement"
ALLOWED_HOSTS = ["localhost"]
ROOT_URLCONF = "urls"
WSGI_APPLICATION = "wsgi.application"
# Of the middleware of `startproject`, the two that need neither a database nor sessions.
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
]
CACHES = json.loads(os.environ["WORKERS_CACHES"])
