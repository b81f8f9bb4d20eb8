"""A pickle that somebody else has put where ours are read."""


class Planted:
    """Loading its pickle does what it should not."""

    loaded = 0

    def __reduce__(self):
        return (_load, ())


def _load():
    Planted.loaded += 1
    return "loaded"
