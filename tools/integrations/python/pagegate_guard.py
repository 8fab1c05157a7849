"""Asks pagegate before a request is made, and fails closed. One file, standard library only, Python 3.9 and newer.

    guard = Guard("https://127.0.0.1:8443", key_file="/etc/pagegate/agent.key")
    guard.enforce("https://example.com/pricing", "GET")      # raises RefusedError unless it is allowed
    with guard.opener().open("https://example.com/") as page:  # judges every redirect, checks every address
        text = page.read()

Only a complete answer 200 with the verdict "allow", or a person's approval of what is flagged, lets a request through. Everything else
is a refusal: another verdict, another status, no answer in time, a failure of the guard itself. See README.md beside this file.
"""
from __future__ import annotations

import dataclasses
import datetime
import functools
import http.client
import io
import ipaddress
import itertools
import json
import logging
import os
import random
import re
import select
import socket
import ssl
import stat
import threading
import time
import urllib.parse
import urllib.request
import uuid
import weakref
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

__all__ = ["Decision", "Guard", "GUARD_IDS", "OVERRIDES", "REWRITES", "RefusedError", "header_name"]
__all__ += ["is_ambiguous_path", "is_plain_url", "is_public_address", "refusal_text"]

_failures = logging.getLogger("pagegate_guard")

#: Why a guard itself refuses, by id: the note that goes with it.
GUARD_IDS: Mapping[str, str] = {
    "timeout": "pagegate did not answer in time. Nothing is fetched without a verdict; try again later.",
    "unreachable": "pagegate cannot be reached. Nothing is fetched without a verdict; try again later.",
    "closed": "The guard is closed.",
    "internal": "The guard failed. Nothing is fetched without a verdict.",
    "bad_answer": "What answered is not pagegate, or its answer is damaged. Nothing is fetched without a verdict.",
    "wrong_domain": "The answer is about another domain than the one asked about.",
    "bad_request": "The URL or the method cannot be asked about: it is too long, or not one.",
    "inside_address": "The host leads to an address that is not public. This is policy: a retry will not help.",
    "host_header": "A header of the request names another place than its URL. This is policy: a retry will not help.",
    "request_target": "Only plain http and https URLs can be fetched: ASCII, without user name, the host in punycode. "
    "Write the URL in that form.",
    "ambiguous_path": "Sites read the path in different ways: it has dot segments, a backslash or a number sign. "
    "Ask for the URL that is meant.",
    "refused_here": "This gateway refuses the host without asking. This is policy: a retry will not help.",
}

# An answer that is larger is not one of pagegate's.
_ANSWER_MAX_BYTES = 1024 * 1024
# pagegate's own limit for a value.
_VALUE_MAX_BYTES = 8192
# Verdicts on longer URLs are not kept.
_KEPT_URL_MAX_LENGTH = 2048
_IDLE_CONNECTIONS_MAX = 64
# Kept connections are given up before the server does so (after 10 s), so that no request meets a closing one.
_IDLE_MAX_SECONDS = 4.0
# The first pause before another try; it doubles with each.
_BACKOFF_SECONDS = 0.05
_KEY = re.compile(r"[\x21-\x7e]{1,256}")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LOOPBACK = re.compile(r"localhost|127\.[0-9.]+|::1")
# URLs that every client reads alike: nothing in front of the path that one takes for the host and another does not.
_PLAIN_URL = re.compile(r"(?i:https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?#][\x21-\x7e]*)?")
# What a value names as its scheme; and a bare domain with its port, whose name has a dot so that nobody takes it for a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HOST_AND_PORT = re.compile(r"(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\.?):[0-9]{1,5}(?:[/?#\\]|$)", re.IGNORECASE)
# A name that the URL standard leaves as it is: it ends in a label that is not a number.
_PLAIN_NAME = re.compile(r"(?:[A-Za-z0-9_-]+\.)*[A-Za-z][A-Za-z0-9_-]*\.?")
# In a path, what some sites resolve or cut off and others do not: dot segments, however they are written, and a backslash.
_AMBIGUOUS_PATH = re.compile(r"\\|(?:/|%2f|%5c)(?:\.|%2e){1,2}(?:;[^/\\?]*)?(?:/|%2f|%5c|$)", re.IGNORECASE)
#: Headers by which a request asks to be taken for one with another method.
OVERRIDES = frozenset(("x-http-method-override", "x-method-override", "x-http-method"))
#: Headers by which some servers are told another URL than the one in the request line.
REWRITES = frozenset(("x-original-url", "x-rewrite-url"))
# Longer methods are not shown; there are none.
_SHOWN_METHOD_MAX_LENGTH = 32
# Headers that say where a body ends.
_FRAMING = frozenset(("content-length", "transfer-encoding"))
# A socket takes no longer one, and nobody waits so long.
_TIMEOUT_MAX_SECONDS = 3600
# Ids of the shipped rules that say that the URL, or the host, carries data out.
_CARRIERS = frozenset(("secret_in_url", "dns_tunnel"))
_KNOWN_METHODS = frozenset("GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH".split())
_MASK = "***"

# Networks that are not the public Internet: the IANA registries of special-purpose addresses (RFC 6890 and its updates), and the
# metadata service of a cloud that stands on another address.
_SPECIAL = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
        "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 "
        "2001::/23 2001:db8::/32 2002::/16 3fff::/20"
    ).split()
)
# The one block that global unicast addresses are given out of: mapped, translated (NAT64), local and multicast ones lie outside.
_UNICAST = ipaddress.ip_network("2000::/3")


def is_public_address(text: str) -> bool:
    """Whether an IP address is one of the public Internet. Anything that is no address is not, nor one with a zone."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.version == 6:
        # ISATAP carries an IPv4 address after the interface identifier 0:5efe or 200:5efe.
        isatap = (int(address) >> 32) & 0xFDFFFFFF == 0x00005EFE
        if "%" in text or isatap or address not in _UNICAST:
            return False
    return not any(address in network for network in _SPECIAL if network.version == address.version)


def is_plain_url(url: str) -> bool:
    """Whether every client reads a URL alike: http or https, ASCII, no user name, no escape in the host."""
    return _PLAIN_URL.fullmatch(url) is not None


def header_name(name: Any) -> str:
    """The name that a site knows a header by: many take an underscore for a hyphen."""
    return _text(name).lower().replace("_", "-")


def is_ambiguous_path(target: str) -> bool:
    """Whether sites read a path, with its query, in different ways as it is sent. What follows a number sign must not be sent."""
    return "#" in target or _AMBIGUOUS_PATH.search(target.partition("?")[0]) is not None


@dataclasses.dataclass(frozen=True)
class Decision:
    """The answer to: may this request be made? True where it may."""

    method: str
    #: The URL as it was asked about.
    url: str
    #: "allow", "deny", "flag", or "error" where there is no verdict.
    verdict: str
    #: The layer that decided, as pagegate names it; "guard" where the guard itself refused.
    layer: str
    #: The entry that decided; for the layer "guard" a key of GUARD_IDS, or "status_" and an HTTP status.
    id: str
    #: What a person, or a model, should know.
    note: str
    #: The domain that pagegate judged; empty where it gave no verdict.
    domain: str = ""
    found: bool = False
    #: "<index generation>.<policy revision>" of the verdict; empty where pagegate gave none.
    data: str = ""
    #: "lookup" cost one lookup, "cache" cost none, "guard" is a refusal of the guard's own.
    source: str = "guard"
    #: A person approved what was flagged.
    approved: bool = False
    latency_ms: float = 0.0

    @property
    def allowed(self) -> bool:
        return self.verdict == "allow" or (self.verdict == "flag" and self.approved)

    def __bool__(self) -> bool:
        return self.allowed

    def line(self, full_url: bool = False) -> str:
        """One line of NDJSON in the form of the server's decision log. Without full_url the path is masked and the query left out."""
        parts = _split(self.url)
        if parts is None:
            place: Dict[str, str] = {"url": self.url} if full_url else {"scheme": "", "host": _MASK, "path": _MASK}
        else:
            is_carrier = self.id in _CARRIERS and not full_url
            path = parts.path or "/"
            place = {"scheme": parts.scheme, "host": _MASK if is_carrier else parts.hostname or ""}
            place["path"] = path if full_url or path == "/" else "/" + _MASK
            if full_url:
                place = {"url": self.url, **place}
        line: Dict[str, Any] = {
            "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "id": str(uuid.uuid4()),
            "method": self.method if self.method in _KNOWN_METHODS else "other",
            **place,
            "domain": _MASK if self.id in _CARRIERS and not full_url else self.domain,
            "found": self.found,
            "verdict": self.verdict,
            "matched": {"layer": self.layer, "id": self.id, "note": self.note},
            "data": self.data,
            "latency_ms": round(self.latency_ms, 3),
            "source": self.source,
        }
        if self.approved:
            line["approved"] = True
        return json.dumps(line, separators=(",", ":")) + "\n"


def refusal_text(decision: Decision) -> str:
    """One sentence a model can act on. It names the origin and leaves out the rest of the URL, which may be secret."""
    parts = _split(decision.url)
    origin = "this address" if parts is None else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    person = " A person has to approve it first." if decision.verdict == "flag" else ""
    matched = f"{decision.layer}/{decision.id}"
    # What is no method may be any text, which a reader would take for pagegate's.
    is_method = _TOKEN.fullmatch(decision.method) and len(decision.method) <= _SHOWN_METHOD_MAX_LENGTH
    request = decision.method if is_method else "a request to"
    return _plain(f"pagegate refused {request} {origin}: {decision.verdict} ({matched}). {decision.note}{person}", 2000)


class RefusedError(Exception):
    """A request was refused. It was not made. Not an OSError: nobody is to take it for a network that may work next time."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision
        self.verdict = decision.verdict
        self.layer = decision.layer
        self.id = decision.id
        self.note = decision.note

    def __str__(self) -> str:
        return refusal_text(self.decision)


class _Failure(Exception):
    """There is no verdict, and why: a key of GUARD_IDS, or "status_" and a status with its own note."""

    def __init__(self, id_: str, note: str = "", retry_seconds: Optional[float] = None) -> None:
        super().__init__(id_)
        self.id = id_
        self.note = note or GUARD_IDS[id_]
        #: The least time to wait before asking again; given only where nothing was charged.
        self.retry_seconds = retry_seconds


@dataclasses.dataclass(frozen=True)
class _Answer:
    """A verdict that may be kept: what a decision says, without the request it was asked for."""

    verdict: str
    layer: str
    id: str
    note: str
    domain: str
    found: bool
    data: str


class Guard:
    """Judges requests by asking pagegate. It may be used by many threads at once.

    server             where pagegate listens, such as https://pagegate.example.net:8443; plain http only on loopback
    key, key_file      the API key, or a file that holds it and nothing else, and that others may not read
    ca_file            certificates to trust for pagegate instead of the system's, PEM
    plain_http         plain HTTP to another host than loopback, where the key can be read on the way
    timeout_seconds    longest time for a verdict, retries included
    cache_seconds      for how long a verdict is kept, 0 for never; data that changed ends it earlier
    cache_entries      how many verdicts are kept
    exceptions         hosts that may lead to exactly these addresses although they are not public
    approve            asks a person about a request that is flagged; only True lets it through, this once
    on_decision        told of every decision: for metrics
    log                takes one line for each decision, such as the write of an open file
    log_full_url       lines hold whole URLs

    Raises ValueError or OSError where an option cannot be used: nothing starts half-configured.
    """

    def __init__(
        self,
        server: str,
        *,
        key: Optional[str] = None,
        key_file: Union[str, "os.PathLike[str]", None] = None,
        ca_file: Union[str, "os.PathLike[str]", None] = None,
        plain_http: bool = False,
        timeout_seconds: float = 2.0,
        cache_seconds: float = 300.0,
        cache_entries: int = 10_000,
        exceptions: Optional[Mapping[str, Union[str, Iterable[str]]]] = None,
        approve: Optional[Callable[[Decision], bool]] = None,
        on_decision: Optional[Callable[[Decision], object]] = None,
        log: Optional[Callable[[str], object]] = None,
        log_full_url: bool = False,
    ) -> None:
        if (key is None) == (key_file is None):
            raise ValueError("give either key or key_file")
        key = _read_key(key_file) if key is None else key  # type: ignore[arg-type]
        if not _KEY.fullmatch(key):
            raise ValueError("key: not an API key")
        if not 0 < timeout_seconds <= _TIMEOUT_MAX_SECONDS:
            raise ValueError(f"timeout_seconds must be above 0 and at most {_TIMEOUT_MAX_SECONDS}")
        if not cache_seconds >= 0 or not cache_entries >= 0:
            raise ValueError("cache_seconds and cache_entries must be from 0")
        self._host, self._port, is_tls = _server_address(server, plain_http)
        self._tls = _tls_context(ca_file) if is_tls else None
        self._headers = {"X-API-Key": key, "Accept": "application/json"}
        self._timeout_seconds = timeout_seconds
        self._cache_seconds = cache_seconds
        self._cache_entries = cache_entries
        self._exceptions = _read_exceptions(exceptions or {})
        self._approve = approve
        self._on_decision = on_decision
        self._log = log
        self._log_full_url = log_full_url
        self._is_closed = False
        self._cache: OrderedDict[Tuple[str, str], Tuple[_Answer, float]] = OrderedDict()
        self._data = ""
        self._data_seen_at = 0.0
        self._forget_connections()
        _guards.add(self)

    def check(self, url: str, method: str = "GET") -> Decision:
        """The decision about a request. Never raises, and asks no person: what is flagged comes back as "flag"."""
        decision = self._decide(url, method)
        self._report(decision)
        return decision

    def enforce(self, url: str, method: str = "GET") -> Decision:
        """Returns where a request may be made, else raises RefusedError. A person is asked about what is flagged, if there is one."""
        decision = self._decide(url, method)
        if decision.verdict == "flag" and self._approve is not None:
            try:
                approved = self._approve(decision) is True
            except Exception:
                _failures.exception("approve failed; what was flagged is refused")
                approved = False
            decision = dataclasses.replace(decision, approved=approved)
        self._report(decision)
        if not decision.allowed:
            raise RefusedError(decision)
        return decision

    def refuse(self, url: str, method: str, id_: str, detail: str = "") -> RefusedError:
        """The refusal of a request for a reason that pagegate cannot see: a key of GUARD_IDS. It is reported like any decision."""
        note = f"{GUARD_IDS[id_]} ({detail})" if detail else GUARD_IDS[id_]
        decision = Decision(method, url, "deny", "guard", id_, _plain(note))
        self._report(decision)
        return RefusedError(decision)

    def permits(self, host: str, address: str) -> bool:
        """Whether a connection for a host may go to an address: one of the public Internet, or an exception for this very host."""
        return is_public_address(address) or _canonical(address) in self._exceptions.get(_host_key(host), ())

    def connect(self, host: str, port: int, timeout: Optional[float] = None, url: str = "") -> socket.socket:
        """A TCP connection to one of the addresses of a host. Raises RefusedError before the first packet where any of them is not
        permitted: a name that leads inside and outside is not to be trusted. What was checked is what is connected to."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError as error:
            raise OSError(f"{host!r} cannot be resolved") from error
        url = url or f"//{host}:{port}/"
        for *_, place in found:
            if not self.permits(host, str(place[0])):
                raise self.refuse(url, "CONNECT", "inside_address", f"{host} is {place[0]}")
        failure: OSError = OSError(f"{host} has no address")
        for family, kind, protocol, _, place in found:
            opened = socket.socket(family, kind, protocol)
            try:
                if timeout is not None:
                    opened.settimeout(timeout)
                opened.connect(place)
                peer = str(opened.getpeername()[0])
                if not self.permits(host, peer):
                    raise self.refuse(url, "CONNECT", "inside_address", f"{host} is {peer}")
                return opened
            except OSError as error:
                opened.close()
                failure = error
            except BaseException:
                opened.close()
                raise
        raise failure

    def opener(self, context: Optional[ssl.SSLContext] = None) -> urllib.request.OpenerDirector:
        """An opener of urllib that makes no request, follows no redirect and opens no connection that the guard refuses. It takes no
        proxy from the environment, and refuses every scheme but http and https. context: TLS for the sites, instead of the system's authorities."""
        opener = urllib.request.OpenerDirector()
        for handler in (
            _OtherSchemes(self),
            _Requests(self, context or _tls_context(None)),
            _Redirects(self),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            opener.add_handler(handler)
        return opener

    def close(self) -> None:
        """Ends all connections; whoever asks later is refused."""
        self._is_closed = True
        with self._lock:
            idle, self._idle = self._idle, []
            self._cache.clear()
        for channel in idle:
            channel.end()

    def _decide(self, url: str, method: str) -> Decision:
        started = time.monotonic()

        def decision(answer: _Answer, source: str) -> Decision:
            fields = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
            latency_ms = (time.monotonic() - started) * 1000
            return Decision(method=str(method), url=str(url), source=source, latency_ms=latency_ms, **fields)

        try:
            method = method.upper()
            key = (method, url)
            if self._is_closed:
                raise _Failure("closed")
            if not _TOKEN.fullmatch(method) or max(len(method), len(url.encode())) > _VALUE_MAX_BYTES:
                raise _Failure("bad_request")
            if _names_other_scheme(url):
                return decision(_Answer("deny", "guard", "request_target", GUARD_IDS["request_target"], "", False, ""), "guard")
            kept = self._find(key)
            if kept is not None:
                return decision(kept, "cache")
            answer = self._ask(url, method, started + self._timeout_seconds)
            self._keep(key, answer, started)
            return decision(answer, "lookup")
        except _Failure as failure:
            return decision(_Answer("error", "guard", failure.id, failure.note, "", False, ""), "guard")
        except (AttributeError, TypeError, UnicodeError):
            # A URL or a method that is no text, or half a character.
            return decision(_Answer("error", "guard", "bad_request", GUARD_IDS["bad_request"], "", False, ""), "guard")
        except Exception:
            _failures.exception("a request is refused because the guard failed")
            return decision(_Answer("error", "guard", "internal", GUARD_IDS["internal"], "", False, ""), "guard")

    def _report(self, decision: Decision) -> None:
        # What only watches must neither change a decision nor keep it from its caller.
        try:
            if self._on_decision is not None:
                self._on_decision(decision)
            if self._log is not None:
                self._log(decision.line(self._log_full_url))
        except Exception:
            _failures.exception("a decision was not reported")

    def _find(self, key: Tuple[str, str]) -> Optional[_Answer]:
        with self._lock:
            kept = self._cache.get(key)
            if kept is None:
                return None
            if kept[1] > time.monotonic():
                return kept[0]
            del self._cache[key]
            return None

    def _keep(self, key: Tuple[str, str], answer: _Answer, asked_at: float) -> None:
        with self._lock:
            if answer.data != self._data:
                # An answer that was under way when the data changed is one of the old data.
                if asked_at < self._data_seen_at:
                    return
                self._cache.clear()
                self._data = answer.data
                self._data_seen_at = time.monotonic()
            if self._is_closed or not answer.data or not self._cache_entries or not self._cache_seconds:
                return
            if len(key[1]) > _KEPT_URL_MAX_LENGTH:
                return
            self._cache.pop(key, None)
            while len(self._cache) >= self._cache_entries:
                self._cache.popitem(last=False)
            self._cache[key] = (answer, time.monotonic() + self._cache_seconds)

    def _ask(self, url: str, method: str, deadline: float) -> _Answer:
        """Asks until there is a verdict, and again only where nothing was charged: after 429 and 503, and where no connection came about."""
        pause = _BACKOFF_SECONDS
        while True:
            try:
                return self._ask_once(url, method, deadline)
            except _Failure as failure:
                if failure.retry_seconds is None:
                    raise
                wait = max(failure.retry_seconds, pause * random.uniform(0.5, 1))
                if time.monotonic() + wait >= deadline:
                    raise
                time.sleep(wait)
                pause *= 2

    def _ask_once(self, url: str, method: str, deadline: float) -> _Answer:
        channel = self._take_channel(deadline)
        is_reusable = False
        try:
            connection = http.client.HTTPConnection(self._host, self._port)
            connection.sock = channel
            query = urllib.parse.urlencode({"url": url, "method": method}, quote_via=urllib.parse.quote, safe="")
            connection.request("GET", "/api/check?" + query, headers=self._headers)
            response = connection.getresponse()
            # Without a length, an answer that was cut off would look whole.
            if response.length is None and not response.chunked:
                raise _Failure("bad_answer")
            body = response.read(_ANSWER_MAX_BYTES + 1)
            if response.length or len(body) > _ANSWER_MAX_BYTES:
                raise _Failure("bad_answer")
            # After an interim answer another one is to come, which would be taken for that of the next question.
            is_reusable = response.status >= 200 and response.isclosed() and not response.will_close
            return _read_answer(response, body, url)
        except socket.timeout as error:
            raise _Failure("timeout") from error
        except (OSError, http.client.HTTPException) as error:
            # It may have been charged: no other try.
            raise _Failure("bad_answer", f"{GUARD_IDS['bad_answer']} ({type(error).__name__})") from error
        finally:
            self._give_channel(channel, is_reusable)

    def _take_channel(self, deadline: float) -> "_Channel":
        while True:
            with self._lock:
                if not self._idle:
                    break
                channel = self._idle.pop()
            if time.monotonic() - channel.used_at < _IDLE_MAX_SECONDS and channel.is_quiet():
                channel.deadline = deadline
                return channel
            channel.end()
        try:
            return _Channel(self._connect_to_pagegate(deadline), deadline)
        except socket.timeout as error:
            raise _Failure("timeout") from error
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise _Failure("unreachable", f"{GUARD_IDS['unreachable']} (TLS: {_plain(str(error), 200)})") from error
        except OSError as error:
            raise _Failure("unreachable", f"{GUARD_IDS['unreachable']} ({_plain(str(error), 200)})", 0.0) from error

    def _connect_to_pagegate(self, deadline: float) -> socket.socket:
        failure: OSError = OSError("no address")
        for family, kind, protocol, _, place in self._resolve(deadline):
            opened = socket.socket(family, kind, protocol)
            try:
                opened.settimeout(_left(deadline))
                opened.connect(place)
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is None:
                    return opened
                opened.settimeout(_left(deadline))
                return self._tls.wrap_socket(opened, server_hostname=self._host)
            except OSError as error:
                opened.close()
                # Another address would find the same certificate, and no more time.
                if isinstance(error, (ssl.SSLError, socket.timeout)):
                    raise
                failure = error
            except BaseException:
                opened.close()
                raise
        raise failure

    def _resolve(self, deadline: float) -> Any:
        """The addresses of pagegate, found before a deadline, which the system's resolver does not know. One thread waits for it."""
        if _canonical(self._host):
            return socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        with self._lock:
            if self._lookup is None or self._lookup.ended.is_set():
                self._lookup = _NameLookup(self._host, self._port)
                self._lookup.start()
            lookup = self._lookup
        if not lookup.ended.wait(_left(deadline)):
            raise socket.timeout("the name was not resolved in time")
        if not lookup.found:
            raise OSError(f"{self._host} cannot be resolved")
        return lookup.found

    def _give_channel(self, channel: "_Channel", is_reusable: bool) -> None:
        channel.used_at = time.monotonic()
        with self._lock:
            if is_reusable and not self._is_closed and len(self._idle) < _IDLE_CONNECTIONS_MAX:
                self._idle.append(channel)
                return
        channel.end()

    def _forget_connections(self) -> None:
        # In a child that was forked the lock may be held by nobody, and connections belong to the parent, too: answers would mix.
        self._lock = threading.Lock()
        self._idle: List[_Channel] = []
        self._lookup: Optional[_NameLookup] = None


_guards: "weakref.WeakSet[Guard]" = weakref.WeakSet()


def _after_fork() -> None:
    for guard in list(_guards):
        guard._forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _NameLookup(threading.Thread):
    def __init__(self, host: str, port: int) -> None:
        super().__init__(name="pagegate-guard-lookup", daemon=True)
        self._place = (host, port)
        self.found: List[Any] = []
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            self.found = socket.getaddrinfo(*self._place, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            self.found = []
        finally:
            self.ended.set()


class _Channel:
    """A connection to pagegate whose every wait ends at a deadline: http.client's own time limit starts again with each packet."""

    def __init__(self, opened: socket.socket, deadline: float) -> None:
        self._opened = opened
        self.deadline = deadline
        self.used_at = 0.0

    def sendall(self, data: bytes) -> None:
        self._opened.settimeout(_left(self.deadline))
        self._opened.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_ChannelReader(self))

    def recv_into(self, buffer: Any) -> int:
        self._opened.settimeout(_left(self.deadline))
        return self._opened.recv_into(buffer)

    def is_quiet(self) -> bool:
        """Whether nothing came while it was idle: neither its end nor what nobody asked for."""
        if not hasattr(select, "poll"):
            return not select.select([self._opened], [], [], 0)[0]
        poll = select.poll()
        poll.register(self._opened, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Nothing: http.client closes before an answer is read where the server says that it is the last one."""

    def end(self) -> None:
        self._opened.close()


class _ChannelReader(io.RawIOBase):
    def __init__(self, channel: _Channel) -> None:
        self._channel = channel

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._channel.recv_into(buffer)


class _Connection(http.client.HTTPConnection):
    def __init__(self, *args: Any, guard: Guard, url: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self._guard = guard
        self._url = url

    def connect(self) -> None:
        self.sock = self._guard.connect(self.host, self.port, _seconds(self.timeout), self._url)


class _TlsConnection(_Connection):
    default_port = http.client.HTTPS_PORT

    def __init__(self, *args: Any, tls: ssl.SSLContext, **options: Any) -> None:
        super().__init__(*args, **options)
        self._site_tls = tls

    def connect(self) -> None:
        super().connect()
        self.sock = self._site_tls.wrap_socket(self.sock, server_hostname=self.host)


class _Requests(urllib.request.AbstractHTTPHandler):
    """Judges a request right before its connection, so that whatever else an opener does to requests is done before."""

    def __init__(self, guard: Guard, tls: ssl.SSLContext) -> None:
        super().__init__()
        self._guard = guard
        self._tls = tls

    def http_open(self, request: urllib.request.Request) -> Any:
        self._enforce(request)
        return self.do_open(functools.partial(_Connection, guard=self._guard, url=request.full_url), request)

    def https_open(self, request: urllib.request.Request) -> Any:
        self._enforce(request)
        tls_connection = functools.partial(_TlsConnection, guard=self._guard, url=request.full_url, tls=self._tls)
        return self.do_open(tls_connection, request)

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        # By another length than the body's a site would take the rest of the body for the next request. urllib writes it, where nobody else does.
        said = []
        for headers in (request.headers, request.unredirected_hdrs):
            for name in [name for name in headers if header_name(name) in _FRAMING]:
                said.append((header_name(name), _text(headers.pop(name)).strip()))
        if said and _is_stream(request.data):
            if len(said) > 1 or not re.fullmatch("content-length [0-9]+", " ".join(said[0])):
                raise ValueError(f"the length of the body is said in another way than by one Content-Length: {said}")
            request.data = _Body(request.data, int(said[0][1]))
            request.add_unredirected_header("Content-length", said[0][1])
        return self.do_request_(request)

    https_request = http_request

    def _enforce(self, request: urllib.request.Request) -> None:
        url, method = request.full_url, request.get_method()
        if not is_plain_url(url):
            raise self._guard.refuse(url, method, "request_target")
        if is_ambiguous_path(request.selector):
            raise self._guard.refuse(url, method, "ambiguous_path")
        # What is judged must be what is fetched: a request that was turned to a proxy, or aside, is another one.
        plain = urllib.request.Request(url)
        if (request.type, request.host, request.selector) != (plain.type, plain.host, plain.selector):
            raise self._guard.refuse(url, method, "host_header")
        methods = [method]
        # Both kinds of headers are sent, and of one that is in both, not the one that header_items tells.
        for name, value in [*request.headers.items(), *request.unredirected_hdrs.items()]:
            if not _TOKEN.fullmatch(_text(name)):
                raise ValueError(f"not the name of a header: {name!r}")
            known, value = header_name(name), _text(value).strip()
            if known in REWRITES or (known == "host" and value.lower() != plain.host.lower()):
                raise self._guard.refuse(url, method, "host_header")
            if known in OVERRIDES:
                methods.append(value)
        for one in methods:
            self._guard.enforce(url, one)


class _Body:
    """The blocks of a file or an iterable, which are as long together as the request's head says, or fail."""

    def __init__(self, source: Any, size: int) -> None:
        self._source = source
        self._size = size

    def __iter__(self) -> Any:
        left = self._size
        is_file = hasattr(self._source, "read")
        read = itertools.takewhile(len, iter(lambda: self._source.read(65536), None))
        for block in read if is_file else self._source:
            block = block.encode("iso-8859-1") if isinstance(block, str) else block
            left -= memoryview(block).nbytes
            if left < 0:
                break
            yield block
        if left != 0:
            raise ValueError(f"the body is {'longer' if left < 0 else 'shorter'} than its Content-Length says, {self._size}")


def _is_stream(data: Any) -> bool:
    """Whether a body is a file or an iterable: urllib knows the length of everything else."""
    try:
        memoryview(data)
    except TypeError:
        return data is not None and not isinstance(data, str)
    return False


class _OtherSchemes(urllib.request.BaseHandler):
    """Refuses what is neither http nor https: urllib would call it an error of the network, which may work next time."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def unknown_open(self, request: urllib.request.Request) -> Any:
        raise self._guard.refuse(request.full_url, request.get_method(), "request_target")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """urllib's own, but that the credentials of a site stay with it, and that another scheme is a refusal."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        location = headers.get("location", headers.get("uri")) or ""
        if _has_other_scheme(location):
            fp.close()
            raise self._guard.refuse(location, req.get_method(), "request_target")
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_302
    if hasattr(urllib.request.HTTPRedirectHandler, "http_error_308"):
        http_error_308 = http_error_302

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and (following.type, following.host) != (req.type, req.host):
            for name in [name for name, _ in following.header_items()]:
                if name.lower() in ("authorization", "cookie", "proxy-authorization", "host"):
                    following.remove_header(name)
        return following


def _text(header: Any) -> str:
    """A header's name or value as it is sent."""
    return header.decode("latin-1") if isinstance(header, bytes) else str(header)


def _read_answer(response: http.client.HTTPResponse, body: bytes, url: str) -> _Answer:
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        value = None
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {}
    status = response.status
    if status != 200:
        reason = ": ".join(text for text in (_plain(fields.get("error"), 60), _plain(fields.get("message"))) if text)
        told = f", {reason}" if reason else "."
        note = f"pagegate answered with status {status}{told} Nothing is fetched without a verdict."
        # Neither of the two is ever charged.
        retry_after = response.getheader("retry-after") or ""
        seconds = float(retry_after) if re.fullmatch("[0-9]{1,6}", retry_after) else 0.0
        raise _Failure(f"status_{status}", note, seconds if status in (429, 503) else None)
    verdict, matched, domain = fields.get("verdict"), fields.get("matched"), fields.get("domain")
    if verdict not in ("allow", "deny", "flag") or not isinstance(matched, dict) or not isinstance(domain, str):
        raise _Failure("bad_answer")
    if not _is_about(domain, url):
        raise _Failure("wrong_domain", f"{GUARD_IDS['wrong_domain']} ({_plain(domain, 253)})")
    return _Answer(
        verdict=verdict,
        layer=_plain(matched.get("layer"), 60),
        id=_plain(matched.get("id"), 120),
        note=_plain(matched.get("note")),
        domain=_plain(domain, 253),
        found=fields.get("found") is True,
        data=_plain(response.getheader("x-pagegate-data"), 120),
    )


def _is_about(domain: str, url: str) -> bool:
    """Whether an answer about a domain can be the answer for a URL: it is its host, or lies above it. Hosts that the URL standard
    would write otherwise (international names, numbers) are left to pagegate."""
    parts = _split(url)
    host = "" if parts is None else (parts.hostname or "")
    if not _PLAIN_NAME.fullmatch(host):
        return domain != ""
    host = _host_key(host)
    return domain != "" and (host == domain or host.endswith("." + domain))


def _has_other_scheme(url: str) -> bool:
    """Whether a URL has a scheme, and neither http nor https."""
    found = _SCHEME.match(re.sub(r"[\t\n\r]", "", url.lstrip("".join(map(chr, range(33))))))
    return found is not None and found[1].lower() not in ("http", "https")


def _names_other_scheme(value: str) -> bool:
    """The same for a value that may also be a bare domain, with or without a port."""
    return _has_other_scheme(value) and not _HOST_AND_PORT.match(value.strip())


def _split(url: str) -> Optional[urllib.parse.SplitResult]:
    """A URL or bare domain taken apart; None where that cannot be done, or there is no host."""
    text = url.strip()
    try:
        has_scheme = "//" in text[:72] or _names_other_scheme(text)
        parts = urllib.parse.urlsplit(text if has_scheme else "https://" + text)
        return parts if parts.hostname else None
    except ValueError:
        return None


def _plain(text: Any, length_max: int = 600) -> str:
    """Text of others, made fit for a message of one line."""
    return re.sub("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]", " ", text[:length_max]) if isinstance(text, str) else ""


def _host_key(host: str) -> str:
    host = host.lower().strip("[]")
    return host[:-1] if host.endswith(".") else host


def _canonical(address: str) -> str:
    try:
        return "" if "%" in address else str(ipaddress.ip_address(address))
    except ValueError:
        return ""


def _read_exceptions(given: Mapping[str, Union[str, Iterable[str]]]) -> Dict[str, frozenset]:
    read: Dict[str, frozenset] = {}
    for host, addresses in given.items():
        found = [_canonical(one) for one in ([addresses] if isinstance(addresses, str) else addresses)]
        if not host or _host_key(host) != host or not found or "" in found:
            raise ValueError(f"exceptions: {host}: give a host in lower case and the exact addresses it may lead to")
        read[host] = frozenset(found)
    return read


# What is a key itself, given where the name of its file belongs.
_LOOKS_LIKE_KEY = re.compile(r"-----BEGIN|[\r\n]|pg_[0-9A-Za-z]{16}")


def _read_key(path: Any) -> str:
    try:
        with open(path, encoding="ascii") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o007:
                raise PermissionError(f"{path}: others may access the API key; chmod o= it")
            return file.read(4096).strip()
    except (OSError, ValueError):
        if not _LOOKS_LIKE_KEY.search(str(path)):
            raise
    # Outside of the handler: a traceback of this error must not show the other one.
    raise ValueError(
        "key_file (--key-file): expected the name of a file, got what looks like a key itself, which is not repeated here; "
        "put it into a file and name that"
    )


def _server_address(server: str, plain_http: bool) -> Tuple[str, int, bool]:
    parts = urllib.parse.urlsplit(server)
    is_tls = parts.scheme == "https"
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError(f"server: {server}: not an http or https URL")
    if parts.path not in ("", "/", "/api", "/api/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(f"server: give the origin alone, such as {parts.scheme}://{parts.hostname}")
    if not is_tls and not plain_http and not _LOOPBACK.fullmatch(parts.hostname):
        raise ValueError("server: the key would be sent in plain text; use https, or set plain_http")
    return parts.hostname, parts.port or (443 if is_tls else 80), is_tls


def _tls_context(ca_file: Any) -> ssl.SSLContext:
    # Not create_default_context: that one writes the session's keys to a file that the environment names.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(ca_file)
    return context


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise socket.timeout("time is up")
    return left


def _seconds(timeout: Any) -> Optional[float]:
    return float(timeout) if isinstance(timeout, (int, float)) else socket.getdefaulttimeout()
