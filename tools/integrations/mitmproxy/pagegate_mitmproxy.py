#!/usr/bin/python3
"""A forward proxy that opens TLS and lets through only what pagegate allows: mitmproxy with one addon that cannot be unloaded.

    pagegate_mitmproxy.py --server https://127.0.0.1:8443 --key-file /etc/pagegate/proxy.key --state /var/lib/pagegate-proxy

It is a program instead of a script for "mitmdump -s", because mitmproxy reloads a script whose file changes, and serves on without it
where that fails or the file is gone. For the same reason mitmproxy's own configuration file and options are not read: several of them
let traffic pass unseen. See README.md beside this file.
"""
from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import html
import ipaddress
import os
import pathlib
import re
import signal
import socket
import sys
from typing import Any, List, Optional, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

from pagegate_guard import OVERRIDES, REWRITES, Decision, Guard, RefusedError, header_name, is_ambiguous_path, is_plain_url, refusal_text  # noqa: E402

try:
    from mitmproxy import http, master, options, version
    from mitmproxy.addons import core, errorcheck, next_layer, proxyserver, termlog, tlsconfig
except ImportError as missing:
    sys.exit(f"pagegate-mitmproxy: mitmproxy is not installed for {sys.executable} ({missing}); on Debian: apt-get install mitmproxy")

# What this relies on was read in this release: that nothing is connected before the hooks below have answered.
SUPPORTED = "8.1."
# Questions to pagegate that may be open at once.
ASK_THREADS = 64
# A larger body, or one of unknown size, is not gathered: it goes on as it comes, or, where the request is refused, is cut off.
GATHERED_BODY_MAX_BYTES = 1024 * 1024
# A place that a Host header or an :authority names.
AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
# What ends a header or a line for some readers; RFC 9112, 2.2, has a proxy put a space in its place.
CONTROLS = re.compile(rb"[\r\n\0]")
# What opening a WebSocket is judged as: what is sent through it later cannot be judged, so it is a write.
WEBSOCKET_METHOD = "POST"


class Pagegate:
    """The addon: judges each request when its headers are there, and each address when a connection is made."""

    def __init__(self, guard: Guard, refused_hosts: frozenset = frozenset()) -> None:
        self._guard = guard
        self._refused_hosts = refused_hosts
        self._threads = concurrent.futures.ThreadPoolExecutor(ASK_THREADS, "pagegate")
        self._resolve: Any = None

    def running(self) -> None:
        # mitmproxy resolves a name after its last hook. Where the loop itself looks names up, what is checked is what is connected to.
        loop = asyncio.get_running_loop()
        self._resolve = loop.getaddrinfo
        loop.getaddrinfo = self._find_addresses  # type: ignore[method-assign]

    def done(self) -> None:
        self._threads.shutdown(wait=False)
        self._guard.close()

    async def requestheaders(self, flow: http.HTTPFlow) -> None:
        try:
            flow.response = None
            await self._enforce(flow.request, flow.client_conn)
        except RefusedError as refused:
            self._refuse(flow, refused.decision)
        except BaseException:
            # mitmproxy lets a request pass whose hook failed.
            decision = self._guard.refuse(f"{flow.request.scheme}://{flow.request.host}/", flow.request.method, "internal").decision
            self._refuse(flow, decision)
            raise
        else:
            flow.request.stream = _is_large(flow.request)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if flow.response is None:
            return
        # Another service for the same host would be reached past this proxy.
        for name in ("alt-svc", "alternate-protocol"):
            flow.response.headers.pop(name, None)
        if flow.response.status_code != 101:
            flow.response.stream = True

    def websocket_message(self, flow: http.HTTPFlow) -> None:
        # mitmproxy keeps all of them; a connection may last for days.
        if flow.websocket is not None:
            del flow.websocket.messages[:-1]

    def tcp_start(self, flow: Any) -> None:
        # Nothing comes here while the option rawtcp is off, as it is below.
        flow.kill()

    def server_connect(self, data: Any) -> None:
        host, port = data.server.address[:2]
        loop = asyncio.get_running_loop()
        try:
            if loop.getaddrinfo != self._find_addresses:
                data.server.error = "addresses are not checked"
            elif data.server.transport_protocol != "tcp" or data.server.via:
                data.server.error = "only TCP, and no other proxy"
            elif _is_address(host) and not self._guard.permits(host, host):
                raise self._guard.refuse(_url("", host, port, "/"), "CONNECT", "inside_address", host)
        except RefusedError as refused:
            data.server.error = str(refused)
        except BaseException:
            data.server.error = "the guard failed"
            raise

    async def _find_addresses(self, host: Any, port: Any, **wanted: Any) -> Any:
        found = await self._resolve(host, port, **wanted)
        if wanted.get("flags", 0) & socket.AI_PASSIVE:
            return found
        for *_, place in found:
            if not self._guard.permits(str(host), str(place[0])):
                url = _url("", str(host), port, "/")
                raise OSError(str(self._guard.refuse(url, "CONNECT", "inside_address", f"{host} is {place[0]}")))
        return found

    async def _enforce(self, request: http.Request, client: Any) -> None:
        """Raises RefusedError unless the request may be made, and takes out of it what would make it another one."""
        _normalize(request)
        url = _url(request.scheme, request.host, request.port, request.path)
        if not request.path.startswith("/") or not is_plain_url(url.partition("#")[0]):
            raise self._guard.refuse(url, request.method, "request_target")
        if is_ambiguous_path(request.path):
            raise self._guard.refuse(url, request.method, "ambiguous_path")
        if request.host.lower() in self._refused_hosts:
            raise self._guard.refuse(url, request.method, "refused_here")
        places = [*request.headers.get_all("host"), *([request.authority] if request.authority else [])]
        if not all(_is_place(text, request) for text in places) or not _is_name(client, request):
            raise self._guard.refuse(url, request.method, "host_header")
        methods = [request.method]
        methods += [value.strip() for name, value in request.headers.items(multi=True) if header_name(name) in OVERRIDES]
        if _opens_websocket(request):
            methods[0] = WEBSOCKET_METHOD
        else:
            # Another protocol could not be judged inside.
            for name in ("upgrade", "http2-settings", "sec-websocket-version"):
                request.headers.pop(name, None)
        for name in ("proxy-authorization", "proxy-connection", *filter(_rewrites, request.headers.keys())):
            request.headers.pop(name, None)
        for method in methods:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._guard.enforce, url, method)

    def _refuse(self, flow: http.HTTPFlow, decision: Decision) -> None:
        flow.request.stream = False
        if _is_large(flow.request):
            flow.kill()
            return
        # A client that waits for it would send its body before it reads the answer.
        flow.request.headers.pop("expect", None)
        flow.response = http.Response.make(403, _page(decision), _page_headers(decision))


def _page(decision: Decision) -> bytes:
    """A refusal as a page that a person and a model can read."""
    verdict, layer, id_ = (html.escape(text) for text in (decision.verdict, decision.layer, decision.id))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Refused by pagegate</title></head><body>'
        f"<h1>Refused by pagegate</h1><p>{html.escape(refusal_text(decision))}</p>"
        f"<dl><dt>verdict</dt><dd>{verdict}</dd><dt>layer</dt><dd>{layer}</dd><dt>id</dt><dd>{id_}</dd></dl></body></html>\n"
    ).encode("utf-8", "replace")


def _page_headers(decision: Decision) -> dict:
    reason = f"{decision.layer}/{decision.id}".encode("ascii", "replace").decode()
    return {
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'",
        "x-pagegate-verdict": decision.verdict,
        "x-pagegate-reason": reason,
    }


def _url(scheme: str, host: str, port: int, path: str) -> str:
    place = f"[{host}]" if ":" in host else host
    is_default = port == {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{place}{path}" if is_default else f"{scheme}://{place}:{port}{path}"


def _is_place(text: str, request: http.Request) -> bool:
    """Whether a Host header or an :authority names the place that the connection goes to."""
    match = AUTHORITY.fullmatch(text.strip())
    if match is None:
        return False
    host, port = match.groups()
    default = 443 if request.scheme == "https" else 80
    return host.strip("[]").lower() == request.host.lower() and (int(port) if port else default) == request.port


def _is_name(client: Any, request: http.Request) -> bool:
    """Whether the name that the client gave for TLS, which mitmproxy hands on, is the one of the request."""
    return request.scheme != "https" or not client.sni or client.sni.lower() == request.host.lower().rstrip(".")


def _normalize(request: http.Request) -> None:
    """Gives headers the one form that every site reads alike: a bare CR could begin a header, and a length such as "+5" be none."""
    request.headers.fields = tuple(tuple(CONTROLS.sub(b" ", part) for part in field) for field in request.headers.fields)
    if "content-length" in request.headers:
        request.headers["content-length"] = str(int(request.headers.get_all("content-length")[0]))


def _opens_websocket(request: http.Request) -> bool:
    """Whether a request is what opens a WebSocket; with another method it would be more than that."""
    asked = [word.strip().lower() for word in request.headers.get("connection", "").split(",")]
    is_websocket = request.headers.get("upgrade", "").strip().lower() == "websocket" and "sec-websocket-key" in request.headers
    return request.method == "GET" and is_websocket and "upgrade" in asked


def _rewrites(name: str) -> bool:
    return header_name(name) in REWRITES


def _is_large(request: http.Request) -> bool:
    size = request.headers.get("content-length", "0")
    return "transfer-encoding" in request.headers or not size.isdigit() or int(size) > GATHERED_BODY_MAX_BYTES


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Proxy(master.Master):
    """mitmproxy with the few addons that this needs, none of which lets traffic pass the guard."""

    def __init__(self, opts: options.Options, addon: Pagegate) -> None:
        super().__init__(opts)
        self.addons.add(
            termlog.TermLog(out=sys.stderr),
            core.Core(),
            addon,
            proxyserver.Proxyserver(),
            next_layer.NextLayer(),
            tlsconfig.TlsConfig(),
            errorcheck.ErrorCheck(),
        )


def _settings(arguments: argparse.Namespace) -> dict:
    host, port = arguments.listen
    return {
        "mode": "regular",
        "listen_host": host,
        "listen_port": port,
        "confdir": arguments.state,
        "ssl_verify_upstream_trusted_ca": arguments.site_ca_file,
        # Nothing is connected before a request was judged: not for the tunnel, nor to read the site's certificate.
        "connection_strategy": "lazy",
        "upstream_cert": False,
        # As HTTP/1.1 it would write a body that came by HTTP/2 without a length so that a site takes it for the next request, and header
        # names that hold a colon or a control as other headers.
        "http2": False,
        # What is neither TLS nor HTTP is not passed on.
        "rawtcp": False,
        # Lines of a lower level name what agents visit.
        "termlog_verbosity": "warn",
    }


async def _serve(arguments: argparse.Namespace, guard: Guard) -> None:
    proxy = Proxy(options.Options(), Pagegate(guard, frozenset(arguments.refuse)))
    proxy.options.update(**_settings(arguments))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, proxy.shutdown)
    authority = os.path.join(arguments.state, "mitmproxy-ca-cert.pem")
    print(f"pagegate-mitmproxy starts at {_place_text(arguments.listen)}; agents must trust {authority}", file=sys.stderr, flush=True)
    await proxy.run()


def _place_text(place: Tuple[str, int]) -> str:
    return f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"


def _listen(text: str) -> Tuple[str, int]:
    match = AUTHORITY.fullmatch(text)
    host = match.group(1).strip("[]") if match else ""
    if match is None or match.group(2) is None or not _is_address(host) or not 0 < int(match.group(2)) < 65536:
        raise argparse.ArgumentTypeError(f"{text}: give ADDRESS:PORT, such as 127.0.0.1:8080")
    return host, int(match.group(2))


def _exception(text: str) -> Tuple[str, str]:
    host, equals, address = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: give HOST=ADDRESS, such as intra.example=10.0.0.5")
    return host, address


def _read_arguments(words: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="pagegate-mitmproxy",
        description="A forward proxy that opens TLS and lets through only what pagegate allows.",
        epilog="example: pagegate_mitmproxy.py --server https://127.0.0.1:8443 --key-file /etc/pagegate/proxy.key",
    )
    add = parser.add_argument
    add("--server", default="https://127.0.0.1:8443", help="where pagegate listens (default %(default)s)")
    add("--key-file", required=True, help="the file that holds the API key; others may not read it")
    add("--ca-file", help="certificates to trust for pagegate instead of the system's, PEM")
    add("--timeout-ms", type=int, default=2000, help="longest time for a verdict (default %(default)s)")
    add("--cache-seconds", type=float, default=60, help="for how long a verdict is kept, 0 for never (default %(default)s)")
    add("--listen", type=_listen, default=("127.0.0.1", 8080), help="address and port of the proxy (default 127.0.0.1:8080)")
    add("--state", default="/var/lib/pagegate-proxy", help="the folder of the certificate authority (default %(default)s)")
    add("--site-ca-file", help="certificates to trust for the sites instead of the system's, PEM")
    add("--except", dest="exceptions", metavar="HOST=ADDRESS", type=_exception, action="append", default=[],
        help="a host that may lead to exactly this address although it is not public; may be repeated")
    add("--refuse", metavar="HOST", type=str.lower, action="append", default=[],
        help="a host to refuse without a lookup, such as a browser's own update service; may be repeated")
    add("--log", help="a file that gets one line for each decision")
    return parser.parse_args(words)


def _exceptions(pairs: List[Tuple[str, str]]) -> dict:
    gathered: dict = {}
    for host, address in pairs:
        gathered.setdefault(host, []).append(address)
    return gathered


def main(words: Optional[List[str]] = None) -> None:
    arguments = _read_arguments(words)
    if not version.VERSION.startswith(SUPPORTED):
        sys.exit(f"pagegate-mitmproxy: this needs mitmproxy {SUPPORTED}x, whose order of steps it relies on; found {version.VERSION}")
    os.umask(0o077)
    try:
        log = open(arguments.log, "a", buffering=1, encoding="utf-8") if arguments.log else None
        guard = Guard(
            arguments.server,
            key_file=arguments.key_file,
            ca_file=arguments.ca_file,
            timeout_seconds=arguments.timeout_ms / 1000,
            cache_seconds=arguments.cache_seconds,
            exceptions=_exceptions(arguments.exceptions),
            log=log.write if log else None,
        )
        if arguments.site_ca_file:
            open(arguments.site_ca_file, encoding="ascii").close()
        os.makedirs(arguments.state, mode=0o700, exist_ok=True)
    except (OSError, ValueError) as error:
        sys.exit(f"pagegate-mitmproxy: {error}")
    asyncio.run(_serve(arguments, guard))


if __name__ == "__main__":
    main()
