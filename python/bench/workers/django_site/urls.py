"""The site: one page for each number, kept in Django's cache."""

import content
from django.core.cache import cache
from django.http import JsonResponse
from django.urls import path


def page(_request, number):
    """Answers with the value of a number; the header X-Cache tells a hit from a computation."""
    key = f"page:{number}"
    value = cache.get(key)
    found = value is not None
    if not found:
        value = content.compute(number)
        cache.set(key, value)
    return JsonResponse(value, headers={"X-Cache": "hit" if found else "computed"})


urlpatterns = [path("page/<int:number>", page)]
