"""The site: one page for each number, kept in the cache of Flask-Caching."""

import json
import os

import content
from flask import Flask, Response
from flask_caching import Cache
from flask_site import SECRET_KEY

application = Flask(__name__)
application.config.update(
    SECRET_KEY=SECRET_KEY,
    # Nothing expires within a measurement, even where each write of a cache takes a second.
    CACHE_DEFAULT_TIMEOUT=24 * 3600,
    **json.loads(os.environ["WORKERS_CACHE"]),
)
cache = Cache(application)


@application.get("/page/<int:number>")
def page(number):
    """Answers with the value of a number; the header X-Cache tells a hit from a computation."""
    key = f"page:{number}"
    value = cache.get(key)
    found = value is not None
    if not found:
        value = content.compute(number)
        cache.set(key, value)
    # `jsonify` sorts keys; the answer has to have the bytes of `json.dumps`.
    headers = {"X-Cache": "hit" if found else "computed"}
    return Response(json.dumps(value), mimetype="application/json", headers=headers)
