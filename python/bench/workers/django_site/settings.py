"""Django's settings of the site."""

import json
import os

# The site answers only the script, over a unix socket.
SECRET_KEY = "not a secret: this key signs nothing outside of a measurement"
ALLOWED_HOSTS = ["localhost"]
ROOT_URLCONF = "django_site.urls"
WSGI_APPLICATION = "django_site.wsgi.application"
# Of the middleware of `startproject`, the two that need neither a database nor sessions.
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
]
CACHES = {"default": json.loads(os.environ["WORKERS_CACHE"])}
