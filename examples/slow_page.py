"""A page that takes an application half a second, and says nothing of how long it may be kept.

    python3 examples/slow_page.py 8000
    haypile proxy --cache memory:size=64MiB --origin http://127.0.0.1:8000 --listen 127.0.0.1:8080 --ttl 10s
"""

import sqlite3
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

ORDERS = 1_500_000
REPORT = """
    SELECT customer, count(*), sum(price), max(price), group_concat(DISTINCT article)
    FROM orders GROUP BY customer ORDER BY sum(price) DESC LIMIT 50
"""

database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE orders (customer INTEGER, article INTEGER, price INTEGER)")
rows = ((number * 7919 % 5000, number % 97, number * 31 % 1000) for number in range(ORDERS))
database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)


def page(_environ, start_response):
    lines = ["<tr>" + "".join(f"<td>{cell}" for cell in row) for row in database.execute(REPORT)]
    start_response("200 OK", [("Content-Type", "text/html")])
    return [("<table>" + "\n".join(lines) + "</table>").encode()]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


if __name__ == "__main__":
    with make_server("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 8000, page, handler_class=Quiet) as server:
        server.serve_forever()
