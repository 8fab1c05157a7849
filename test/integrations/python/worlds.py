"""Test servers on loopback: a stand-in for pagegate, and one for all sites."""
import contextlib
import http.server
import json
import os
import socket
import socketserver
import subprocess
import tempfile
import threading
import urllib.parse

KEY = "pg_test"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """Ignores the errors of clients that disconnect: they are not failures of a test."""


class _Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass


class Running:
    """A server in threads of this process. `asked` has all requests received."""

    def __init__(self, handler, tls=None, address="127.0.0.1"):
        self.asked = []
        self.connections = 0
        self.server = _Server((address, 0), handler)
        self.server.running = self
        accept = self.server.get_request

        def counted():
            opened = accept()
            self.connections += 1
            return opened

        self.server.get_request = counted
        self.port = self.server.server_address[1]
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def verdict(value="allow", domain=None, id_="test", **extra):
    """An answer as pagegate would give it: status, headers, body."""

    def answer(url):
        host = urllib.parse.urlsplit(url if "//" in url else "https://" + url).hostname or "x"
        matched = {"layer": "rules", "id": id_, "note": f"note of {id_}"}
        body = {"domain": domain or host, "found": True, "page_types": {}, "verdict": value, "matched": matched}
        return 200, {"x-pagegate-data": "1.aaaa"}, json.dumps({**body, **extra})

    return answer


class Judge(Running):
    """A stand-in for pagegate. `judge(url, method)` returns a result of `verdict`, or a function that gets the request's handler."""

    def __init__(self, judge=lambda url, method: verdict(), tls=None):
        self.judge = judge
        running = self

        class Handler(_Quiet):
            def do_GET(self):
                query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query, keep_blank_values=True)
                url, method = query["url"][0], query["method"][0]
                running.asked.append(f"{method} {url}")
                running.seen = dict(self.headers.items())
                running.path = self.path
                given = running.judge(url, method)
                if given is None:
                    return
                status, headers, body = given(url) if callable(given) else given
                data = body.encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(data)), **headers}.items():
                    if value is not None:
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

        Handler.running = self
        self.handler = Handler
        super().__init__(Handler, tls)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


class Raw(Running):
    """Calls `speak(connection)` for each connection, to send invalid answers."""

    def __init__(self, speak):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                speak(self.request)

        super().__init__(Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


class Origin(Running):
    """A stand-in for all sites. `pages` maps a path to (status, headers, body); any other path is answered with the word "page"."""

    def __init__(self, tls=None, address="127.0.0.1"):
        self.pages = {}
        self.headers = []
        running = self

        class Handler(_Quiet):
            def answer(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                running.asked.append(f"{self.command} {self.headers['host'].split(':')[0]} {self.path}")
                running.headers.append(dict(self.headers.items()))
                status, headers, body = running.pages.get(self.path, (200, {}, "page"))
                data = body.encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer

        super().__init__(Handler, tls, address)


@contextlib.contextmanager
def resolving(names):
    """Resolves names as a test defines: to one address, to several, or to the result of a function. Addresses resolve to themselves."""
    system = socket.getaddrinfo

    def find(host, port, *args, **options):
        given = names.get(host)
        if given is None:
            options.setdefault("flags", 0)
            options["flags"] |= socket.AI_NUMERICHOST
            return system(host, port, *args, **options)
        addresses = given() if callable(given) else given
        found = []
        for address in [addresses] if isinstance(addresses, str) else addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            place = (address, port, 0, 0) if ":" in address else (address, port)
            found.append((family, socket.SOCK_STREAM, 6, "", place))
        return found

    socket.getaddrinfo = find
    try:
        yield
    finally:
        socket.getaddrinfo = system


def certificate(folder, names):
    """Creates a self-signed certificate for names and addresses. Returns its file, which also contains the key."""
    file = os.path.join(folder, "tls.pem")
    key = os.path.join(folder, "tls.key")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", f"subjectAltName={names}", "-keyout", key, "-out", file]
    subprocess.run(command, check=True, capture_output=True)
    with open(file, "a", encoding="ascii") as both, open(key, encoding="ascii") as secret:
        both.write(secret.read())
    return file


def temporary_folder(test):
    folder = tempfile.TemporaryDirectory(prefix="pagegate-guard-")
    test.addCleanup(folder.cleanup)
    return folder.name
