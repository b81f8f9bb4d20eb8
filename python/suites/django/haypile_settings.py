"""Settings under which Django's cache tests run. The tests replace CACHES."""

SECRET_KEY = "a secret of these tests, which is long enough"
INSTALLED_APPS = ["cache"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3"}, "other": {"ENGINE": "django.db.backends.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
