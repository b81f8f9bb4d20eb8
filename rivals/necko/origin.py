"""A small HTTP origin that counts its requests: for the check of the settings, and for tests."""

import http.server
import socket
import sys
import threading

# The interval between checks for the end: the longest wait of `close`.
POLL_SECONDS = 0.01


class Server(http.server.ThreadingHTTPServer):
    """A server with a thread for each connection."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        """Reports an error of a connection, unless the client has ended it or refuses the certificate."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Origin:
    """Answers GET by the bodies of its paths, on the loopback device. A page is a body with its type and its
    `Cache-Control`; `answers` has other statuses and further header lines of some paths. It speaks TLS if it has a
    context (`ssl.SSLContext`) for it."""

    def __init__(self, bodies, cache_control="max-age=86400", pages=None, answers=None, tls=None):
        self.bodies, self.cache_control, self.pages = bodies, cache_control, pages or {}
        self.answers = answers or {}
        self.requests = 0
        self._server = Server(("127.0.0.1", 0), self._handler())
        if tls is not None:
            # The thread of a connection shakes hands, so that one that stalls does not hold up the others.
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(POLL_SECONDS,), daemon=True)
        self._thread.start()

    @property
    def address(self):
        """The address, as a job's line `origin` has it."""
        return "%s:%d" % self._server.server_address

    def close(self):
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _handler(origin):  # pylint: disable=no-self-argument
        class Handler(http.server.BaseHTTPRequestHandler):
            """One connection."""

            protocol_version = "HTTP/1.1"
            # Head and body leave in one write: a body that comes later meets a delayed acknowledgement.
            wbufsize = -1

            def setup(self):
                self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                super().setup()

            def do_GET(self):  # pylint: disable=invalid-name
                """Answers."""
                origin.requests += 1
                plain = (origin.bodies.get(self.path), "application/octet-stream", origin.cache_control)
                body, media_type, cache_control = origin.pages.get(self.path, plain)
                status, headers = origin.answers.get(self.path, (404 if body is None else 200, {}))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Cache-Control", cache_control)
                self.send_header("Content-Type", media_type)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")
                self.wfile.flush()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Says nothing."""

        return Handler
