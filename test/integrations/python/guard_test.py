"""The guard for Python: its lookups, that it fails closed, and that its opener reaches no refused target."""
import array
import ast
import io
import json
import logging
import os
import pathlib
import pickle
import socket
import ssl
import sys
import threading
import time
import traceback
import unittest
import unittest.mock
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).parents[3] / "tools/integrations/python/pagegate_guard.py"
sys.path[:0] = [str(SOURCE.parent), str(pathlib.Path(__file__).parent)]

from worlds import KEY, Judge, Origin, Raw, certificate, free_port, resolving, temporary_folder, verdict  # noqa: E402

import pagegate_guard  # noqa: E402
from pagegate_guard import Decision, Guard, RefusedError, is_public_address, refusal_text  # noqa: E402

URL = "https://example.com/a"
# Long enough for a busy machine. A test of the timeout creates its own guard.
PATIENT = 60.0


class Case(unittest.TestCase):
    def setUp(self):
        # The log of expected failures would look like a failure of the test.
        logging.getLogger("pagegate_guard").setLevel(logging.CRITICAL)

    def judge(self, *args, **options):
        judge = Judge(*args, **options)
        self.addCleanup(judge.close)
        return judge

    def guard(self, server, **options):
        options = {"key": KEY, "timeout_seconds": PATIENT, **options}
        guard = Guard(server if isinstance(server, str) else server.url, **options)
        self.addCleanup(guard.close)
        return guard

    def assertRefused(self, decision, id_=None, verdict_="error"):
        self.assertFalse(decision)
        self.assertFalse(decision.allowed)
        self.assertEqual(decision.verdict, verdict_)
        if id_ is not None:
            self.assertEqual(decision.id, id_)


class Source(unittest.TestCase):
    def test_needs_only_python_3_9_and_its_standard_library(self):
        tree = ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 9))
        imported = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
            self.assertNotIsInstance(node, getattr(ast, "Match", ()))
        self.assertGreater(len(imported), 10)
        if hasattr(sys, "stdlib_module_names"):
            self.assertEqual(imported - sys.stdlib_module_names, set())


class Verdicts(Case):
    def test_only_the_verdict_allow_allows(self):
        for value in ("allow", "deny", "flag"):
            judge = self.judge(lambda url, method: verdict(value, id_="some"))
            decision = self.guard(judge).check(URL)
            self.assertEqual(decision.verdict, value)
            self.assertIs(bool(decision), value == "allow")
            self.assertEqual((decision.layer, decision.id, decision.note), ("rules", "some", "note of some"))
            self.assertEqual((decision.domain, decision.found, decision.data), ("example.com", True, "1.aaaa"))
            self.assertEqual(decision.source, "lookup")

    def test_enforce_raises_one_error_with_the_reason(self):
        judge = self.judge(lambda url, method: verdict("deny", id_="login"))
        with self.assertRaises(RefusedError) as caught:
            self.guard(judge).enforce("https://example.com/login?token=secret", "post")
        error = caught.exception
        self.assertEqual((error.verdict, error.layer, error.id, error.note), ("deny", "rules", "login", "note of login"))
        self.assertEqual(str(error), "pagegate refused POST https://example.com: deny (rules/login). note of login")
        self.assertEqual(pickle.loads(pickle.dumps(error)).decision, error.decision)
        self.assertNotIsInstance(error, OSError)

    def test_a_lookup_has_the_unchanged_url_and_method_and_the_key_in_the_header(self):
        judge = self.judge()
        self.guard(judge).enforce("https://example.com/a b?x=1&y=%2F+#ü", "delete")
        self.assertEqual(judge.asked, ["DELETE https://example.com/a b?x=1&y=%2F+#ü"])
        self.assertEqual(judge.path.split("&")[1], "method=DELETE")
        self.assertIn("url=https%3A%2F%2Fexample.com%2Fa%20b%3Fx%3D1%26y%3D%252F%2B%23%C3%BC&", judge.path)
        self.assertEqual(judge.seen["X-API-Key"], KEY)

    def test_a_person_decides_about_a_flag_and_only_true_approves(self):
        judge = self.judge(lambda url, method: verdict("flag"))
        for given, passes in ((True, True), (False, False), (None, False), (1, False), ("yes", False)):
            asked = []
            guard = self.guard(judge, approve=lambda decision: asked.append(decision) or given)
            if passes:
                self.assertTrue(guard.enforce(URL).approved)
            else:
                self.assertRaises(RefusedError, guard.enforce, URL)
            self.assertEqual([one.verdict for one in asked], ["flag"])
            self.assertFalse(guard.check(URL), "check asks nobody")

        def fail(_):
            raise RuntimeError("nobody there")

        self.assertRaises(RefusedError, self.guard(judge, approve=fail).enforce, URL)

    def test_a_person_is_asked_only_about_flags_and_each_time(self):
        answers = iter([verdict("deny"), (503, {}, "{}"), verdict("flag")])
        judge = self.judge(lambda url, method: next(answers))
        asked = []
        guard = self.guard(judge, approve=lambda decision: asked.append(decision.verdict) or True, timeout_seconds=PATIENT)
        self.assertRaises(RefusedError, guard.enforce, URL + "1")
        guard.enforce(URL + "2")
        guard.enforce(URL + "2")
        self.assertEqual(asked, ["flag", "flag"])


class FailsClosed(Case):
    def test_error_statuses_are_refusals_whatever_the_body(self):
        allow = json.dumps({"domain": "example.com", "verdict": "allow", "matched": {"layer": "a", "id": "b", "note": "c"}})
        for status in (201, 204, 206, 301, 302, 307, 308, 400, 401, 403, 404, 405, 429, 500, 502, 503):
            headers = {"retry-after": "120", "location": f"http://127.0.0.1:{free_port()}/"}
            judge = self.judge(lambda url, method: (status, headers, "" if status == 204 else allow))
            decision = self.guard(judge).check(URL)
            self.assertRefused(decision, f"status_{status}")
            self.assertEqual(decision.source, "guard")

    def test_a_refusal_by_status_contains_the_message_of_pagegate(self):
        body = json.dumps({"error": "quota_exhausted", "message": "The quota is used up."})
        judge = self.judge(lambda url, method: (403, {}, body))
        text = refusal_text(self.guard(judge).check(URL))
        self.assertIn("status 403, quota_exhausted: The quota is used up.", text)

    def test_invalid_answers(self):
        matched = {"layer": "a", "id": "b", "note": "c"}
        whole = {"domain": "example.com", "verdict": "allow", "matched": matched}
        for value in (
            {**whole, "verdict": "ALLOW"},
            {**whole, "verdict": ["allow"]},
            {**whole, "verdict": None},
            {**whole, "verdict": True},
            {**whole, "matched": None},
            {**whole, "matched": [matched]},
            {**whole, "domain": None},
            {**whole, "domain": ""},
            {**whole, "domain": "other.com"},
            {**whole, "domain": "ample.com"},
            {**whole, "domain": "www.example.com"},
            [whole],
            "allow",
            None,
            {},
        ):
            judge = self.judge(lambda url, method: (200, {}, json.dumps(value)))
            other = isinstance(value, dict) and isinstance(value.get("domain"), str) and value["domain"] != "example.com"
            self.assertRefused(self.guard(judge).check(URL), "wrong_domain" if other else "bad_answer")
        for text in ("", "{", '{"verdict":"allow"', "[" * 100_000, "\x00"):
            judge = self.judge(lambda url, method: (200, {}, text))
            self.assertRefused(self.guard(judge).check(URL), "bad_answer")

    def test_an_answer_may_be_about_the_host_or_a_parent_domain(self):
        judge = self.judge(lambda url, method: verdict(domain="example.com"))
        for url in ("https://www.example.com/", "http://a.example.com:8080/x", "EXAMPLE.com", "example.com./login"):
            self.assertTrue(self.guard(judge).check(url), url)
        self.assertRefused(self.guard(judge).check("https://example.org/"), "wrong_domain")

    def test_answers_that_are_truncated_too_large_or_endless(self):
        body = json.dumps({"domain": "example.com", "verdict": "allow", "matched": {}}).encode()

        def answering(head, data):
            def speak(connection):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + data)
                connection.close()

            return speak

        whole = b"content-length: %d" % len(body)
        for head, data, passes in (
            (whole, body, True),
            (b"transfer-encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), True),
            (b"content-length: %d" % (len(body) + 1), body, False),
            (b"connection: close", body, False),
            (b"transfer-encoding: chunked", b"%x\r\n%s\r\n" % (len(body), body), False),
            (b"content-length: %d" % (len(body) + (1 << 21)), body + b" " * (1 << 21), False),
            (b"content-encoding: gzip\r\n" + whole, b"\x1f\x8b" + body[2:], False),
            (whole + b"\r\nx: " + b"x" * 100_000, body, False),
        ):
            raw = Raw(answering(head, data))
            self.addCleanup(raw.close)
            decision = self.guard(raw).check(URL)
            self.assertIs(bool(decision), passes, head[:60])
            if not passes:
                self.assertRefused(decision, "bad_answer")

    def test_no_answer_in_time(self):
        over = threading.Event()
        self.addCleanup(over.set)

        def silent(connection):
            connection.recv(65536)
            over.wait(PATIENT)

        def dripping(connection):
            # Each byte arrives in time, but the answer never ends.
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            try:
                while not over.wait(0.02):
                    connection.sendall(b"a: b\r\n")
            except OSError:
                pass

        def dripping_body(connection):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            try:
                while not over.wait(0.02):
                    connection.sendall(b" ")
            except OSError:
                pass

        for speak in (silent, dripping, dripping_body):
            raw = Raw(speak)
            self.addCleanup(raw.close)
            self.assertRefused(self.guard(raw, timeout_seconds=0.5).check(URL), "timeout")
            self.assertEqual(raw.connections, 1, "what may have been charged is not asked again")

    def test_no_server(self):
        self.assertRefused(self.guard(f"http://127.0.0.1:{free_port()}", timeout_seconds=2).check(URL), "unreachable")

    def test_a_name_whose_resolution_never_ends(self):
        over = threading.Event()
        self.addCleanup(over.set)
        lookups = []

        def hang(*_, **__):
            lookups.append(1)
            over.wait(PATIENT)
            raise socket.gaierror("over")

        with unittest.mock.patch.object(socket, "getaddrinfo", hang):
            guard = self.guard("https://pagegate.example", timeout_seconds=0.3)
            for _ in range(3):
                self.assertRefused(guard.check(URL), "timeout")
        self.assertEqual(len(lookups), 1, "one thread waits for the resolver")

    def test_requests_that_cannot_be_looked_up(self):
        judge = self.judge()
        guard = self.guard(judge)
        for url, method in (
            ("https://example.com/" + "x" * 8192, "GET"),
            ("https://example.com/\ud800", "GET"),
            (None, "GET"),
            (b"https://example.com/", "GET"),
            (URL, ""),
            (URL, "GE T"),
            (URL, "GET\r\nX: y"),
            (URL, None),
            (URL, "M" * 8_193),
        ):
            self.assertRefused(guard.check(url, method), "bad_request")
        self.assertEqual(judge.asked, [])

    def test_a_scheme_other_than_http_and_https(self):
        judge = self.judge(lambda url, method: verdict())
        guard = self.guard(judge)
        for url in ("data:,user@secret", " DATA:80/x", "da\nta:,x", "file:///etc/passwd", "ftp://a.example/", "javascript:1/x", "mailto:a@b.example"):
            self.assertRefused(guard.check(url), "request_target", "deny")
        self.assertEqual(judge.asked, [])
        for place in ("example.com:8443/x", "localhost:8080", "example.com"):
            guard.check(place)
        self.assertEqual(len(judge.asked), 3)

    def test_the_content_of_a_data_url_is_not_shown(self):
        decision = self.guard(self.judge()).check("data:,user@secret")
        for text in (str(RefusedError(decision)), decision.line()):
            self.assertNotIn("secret", text)

    def test_a_failure_of_the_guard_itself(self):
        guard = self.guard(self.judge())
        with unittest.mock.patch.object(guard, "_find", side_effect=ZeroDivisionError):
            self.assertRefused(guard.check(URL), "internal")
            self.assertRaises(RefusedError, guard.enforce, URL)

    def test_a_closed_guard(self):
        guard = self.guard(self.judge())
        self.assertTrue(guard.check(URL))
        guard.close()
        self.assertRefused(guard.check(URL), "closed")

    def test_a_failing_observer_changes_nothing(self):
        def fail(_):
            raise RuntimeError("full disk")

        judge = self.judge(lambda url, method: verdict("allow" if "good" in url else "deny"))
        guard = self.guard(judge, on_decision=fail, log=fail)
        self.assertTrue(guard.enforce(URL + "good"))
        self.assertRaises(RefusedError, guard.enforce, URL + "bad")

    def test_invalid_options(self):
        folder = temporary_folder(self)
        open_key = os.path.join(folder, "key")
        pathlib.Path(open_key).write_text(KEY)
        os.chmod(open_key, 0o644)
        empty = os.path.join(folder, "empty")
        pathlib.Path(empty).touch(0o600)
        good = "https://127.0.0.1:8443"
        for server, options in (
            (good, {}),
            (good, {"key": KEY, "key_file": open_key}),
            (good, {"key": ""}),
            (good, {"key": "a b"}),
            (good, {"key": "a\r\nX: y"}),
            (good, {"key_file": open_key}),
            (good, {"key_file": empty}),
            (good, {"key_file": os.path.join(folder, "none")}),
            (good, {"key": KEY, "ca_file": os.path.join(folder, "none")}),
            (good, {"key": KEY, "timeout_seconds": 0}),
            (good, {"key": KEY, "timeout_seconds": float("nan")}),
            (good, {"key": KEY, "timeout_seconds": float("inf")}),
            (good, {"key": KEY, "cache_seconds": -1}),
            (good, {"key": KEY, "exceptions": {"intra.example": "10.0.0.0/8"}}),
            (good, {"key": KEY, "exceptions": {"intra.example": []}}),
            (good, {"key": KEY, "exceptions": {"Intra.example": "10.0.0.1"}}),
            ("http://pagegate.example", {"key": KEY}),
            ("http://127.example", {"key": KEY}),
            ("ftp://127.0.0.1", {"key": KEY}),
            ("https://user@127.0.0.1", {"key": KEY}),
            ("https://127.0.0.1/elsewhere", {"key": KEY}),
            ("https://127.0.0.1/?x", {"key": KEY}),
            ("127.0.0.1:8443", {"key": KEY}),
            ("", {"key": KEY}),
        ):
            with self.assertRaises((ValueError, OSError), msg=(server, options)):
                Guard(server, **options)
        secret = "pg_" + "0aZ" * 12
        for value in (secret, secret[:20], f"./{secret}", f"X-API-Key: {secret}", f"{KEY}\n"):
            with self.assertRaises(ValueError) as raised:
                Guard(good, key_file=value)
            text = "".join(traceback.format_exception(type(raised.exception), raised.exception, None))
            self.assertIn("expected the name of a file", text)
            self.assertNotIn(value.strip(), text)
        os.chmod(open_key, 0o640)
        for server in ("http://localhost:8080", "http://[::1]:8080", "https://pagegate.example/api/", good):
            Guard(server, key_file=open_key).close()
        Guard("http://pagegate.example", key=KEY, plain_http=True).close()


class Questions(Case):
    def test_lookups_use_no_proxy_of_the_environment(self):
        proxy = Origin()
        self.addCleanup(proxy.close)
        judge = self.judge()
        names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        with unittest.mock.patch.dict(os.environ, {name: f"http://127.0.0.1:{proxy.port}" for name in names}):
            self.assertTrue(self.guard(judge).check(URL))
        self.assertEqual((proxy.connections, len(judge.asked)), (0, 1))

    def test_a_redirect_is_not_followed_and_the_key_is_sent_nowhere_else(self):
        other = self.judge()
        for status in (301, 302, 303, 307, 308):
            judge = self.judge(lambda url, method: (status, {"location": f"{other.url}/api/check?url=x&method=GET"}, ""))
            self.assertRefused(self.guard(judge).check(URL), f"status_{status}")
        self.assertEqual(other.connections, 0)

    def test_a_retry_only_if_nothing_was_charged(self):
        unavailable = (503, {}, '{"error":"no_index"}')
        limited = (429, {"retry-after": "0"}, "{}")
        answers = iter([unavailable, limited, unavailable, verdict()])
        judge = self.judge(lambda url, method: next(answers))
        self.assertTrue(self.guard(judge).check(URL))
        self.assertEqual(len(judge.asked), 4)
        for status, headers in ((500, {}), (502, {}), (403, {}), (429, {"retry-after": "120"})):
            once = self.judge(lambda url, method: (status, headers, "{}"))
            self.assertRefused(self.guard(once).check(URL), f"status_{status}")
            self.assertEqual(len(once.asked), 1, status)

        def hang_up(connection):
            connection.recv(65536)
            connection.close()

        raw = Raw(hang_up)
        self.addCleanup(raw.close)
        self.assertRefused(self.guard(raw).check(URL), "bad_answer")
        self.assertEqual(raw.connections, 1)

    def test_a_server_that_starts_meanwhile_is_used(self):
        judge = self.judge()
        connect, failures = socket.socket.connect, iter([ConnectionRefusedError(), ConnectionRefusedError()])

        def starting(self_, place):
            for failure in failures:
                raise failure
            connect(self_, place)

        with unittest.mock.patch.object(socket.socket, "connect", starting):
            self.assertTrue(self.guard(judge).check(URL))
        self.assertEqual((next(failures, "none left"), len(judge.asked)), ("none left", 1))

    def test_a_connection_is_reused_and_a_closed_one_is_replaced(self):
        judge = self.judge()
        guard = self.guard(judge)
        for path in "abc":
            self.assertTrue(guard.check(f"https://example.com/{path}"))
        self.assertEqual(judge.connections, 1)

        def once(connection):
            connection.recv(65536)
            body = verdict()(URL)[2].encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

        raw = Raw(once)
        self.addCleanup(raw.close)
        guard = self.guard(raw)
        self.assertTrue(guard.check(URL))
        self.assertNoise(guard)
        self.assertTrue(guard.check(URL))
        self.assertEqual(raw.connections, 2)

    def assertNoise(self, guard):
        """Waits until the idle connection received something: its end, or unexpected data."""
        deadline = time.monotonic() + PATIENT
        while guard._idle[0].is_quiet():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_an_answer_that_is_the_last_of_its_connection_counts(self):
        body = verdict()(URL)[2].encode()

        def speak(connection):
            while connection.recv(65536):
                connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body))
                time.sleep(0.05)
                connection.sendall(body)

        raw = Raw(speak)
        self.addCleanup(raw.close)
        guard = self.guard(raw)
        for _ in range(2):
            self.assertTrue(guard.check(URL))
        self.assertEqual(raw.connections, 2)

    def test_unexpected_data_is_not_an_answer(self):
        def body(value):
            text = json.dumps({"domain": "example.com", "verdict": value, "matched": {}}).encode()
            return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text)

        def speak(connection):
            connection.recv(65536)
            connection.sendall(body("deny"))
            time.sleep(0.2)
            connection.sendall(body("allow"))
            if connection.recv(65536):
                connection.sendall(body("deny"))

        raw = Raw(speak)
        self.addCleanup(raw.close)
        guard = self.guard(raw)
        self.assertRefused(guard.check(URL + "1"), verdict_="deny")
        self.assertNoise(guard)
        self.assertRefused(guard.check(URL + "2"), verdict_="deny")
        self.assertEqual(raw.connections, 2)

    def test_an_answer_after_an_interim_one_is_not_used_for_the_next_lookup(self):
        def answer(value):
            text = json.dumps({"domain": "example.com", "verdict": value, "matched": {}}).encode()
            return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text)

        def speak(connection):
            if b"login" in connection.recv(65536):
                connection.sendall(answer("deny"))
                return
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            if connection.recv(65536):
                connection.sendall(answer("allow") + answer("deny"))

        raw = Raw(speak)
        self.addCleanup(raw.close)
        guard = self.guard(raw)
        self.assertRefused(guard.check(URL), "status_103")
        self.assertRefused(guard.check("https://example.com/login"), verdict_="deny")

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_has_its_own_connections(self):
        judge = self.judge()
        guard = self.guard(judge)
        self.assertTrue(guard.check(URL))
        guard._lock.acquire()
        child = os.fork()
        if child == 0:
            os._exit(0 if guard.check(URL + "child") else 1)
        guard._lock.release()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(guard.check(URL + "parent"))
        self.assertEqual(judge.connections, 2)

    def test_many_threads_each_get_their_own_verdict(self):
        judge = self.judge(lambda url, method: verdict("allow" if url.endswith("0") else "deny"))
        guard = self.guard(judge)
        wrong = []

        def ask(thread):
            for i in range(20):
                url = f"https://example.com/{thread}/{i % 2}"
                if bool(guard.check(f"{url}")) != url.endswith("0"):
                    wrong.append(url)

        threads = [threading.Thread(target=ask, args=(one,)) for one in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_tls(self):
        folder = temporary_folder(self)
        file = certificate(folder, "IP:127.0.0.1,DNS:pagegate.example")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        judge = self.judge(tls=context)
        trusted = f"https://127.0.0.1:{judge.port}"
        guard = self.guard(trusted, ca_file=file)
        for path in "abc":
            self.assertTrue(guard.check(f"https://example.com/{path}"))
        self.assertEqual(judge.connections, 1)
        self.assertRefused(self.guard(trusted).check(URL), "unreachable")
        with resolving({"pagegate.example": "127.0.0.1", "other.example": "127.0.0.1"}):
            self.assertTrue(self.guard(f"https://pagegate.example:{judge.port}", ca_file=file).check(URL))
            self.assertRefused(self.guard(f"https://other.example:{judge.port}", ca_file=file).check(URL), "unreachable")
        plain = self.judge()
        self.assertRefused(self.guard(f"https://127.0.0.1:{plain.port}", timeout_seconds=5).check(URL))
        self.assertEqual(plain.asked, [])

    def test_no_tls_secrets_are_written_to_a_file_of_the_environment(self):
        folder = temporary_folder(self)
        file = certificate(folder, "IP:127.0.0.1")
        log = os.path.join(folder, "keys.log")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        judge = self.judge(tls=context)
        with unittest.mock.patch.dict(os.environ, {"SSLKEYLOGFILE": log}):
            self.assertTrue(self.guard(f"https://127.0.0.1:{judge.port}", ca_file=file).check(URL))
        self.assertFalse(os.path.exists(log))


class Cache(Case):
    def test_one_lookup_per_url_and_method(self):
        judge = self.judge()
        guard = self.guard(judge)
        sources = [guard.check(URL, method).source for method in ("GET", "get", "POST", "GET")]
        self.assertEqual(sources, ["lookup", "cache", "lookup", "cache"])
        self.assertEqual(judge.asked, [f"GET {URL}", f"POST {URL}"])

    def test_on_429_and_503_cached_verdicts_are_used_and_the_rest_is_refused(self):
        for status in (429, 503):
            down = []
            judge = self.judge(lambda url, method: (status, {"retry-after": "120"}, "{}") if down else verdict())
            guard = self.guard(judge)
            self.assertTrue(guard.check(URL))
            down.append(True)
            self.assertTrue(guard.check(URL))
            self.assertRefused(guard.check(URL + "2"), f"status_{status}")
            self.assertRefused(guard.check(URL, "POST"), f"status_{status}")

    def test_changed_data_clears_the_cache(self):
        state = {"data": "1.aaaa", "verdict": "allow"}

        def answer(url, method):
            status, headers, body = verdict(state["verdict"])(url)
            return status, {**headers, "x-pagegate-data": state["data"]}, body

        judge = self.judge(answer)
        guard = self.guard(judge)
        self.assertTrue(guard.check(URL))
        state.update(data="1.bbbb", verdict="deny")
        self.assertTrue(guard.check(URL), "nobody can know yet")
        self.assertFalse(guard.check(URL + "2"))
        self.assertFalse(guard.check(URL))

    def test_a_late_answer_from_old_data_is_not_cached(self):
        gate, waiting = threading.Event(), threading.Event()
        self.addCleanup(gate.set)

        def answer(url, method):
            if "slow" in url:
                waiting.set()
                gate.wait(PATIENT)
                return verdict("allow")
            status, headers, body = verdict("deny")(url)
            return status, {**headers, "x-pagegate-data": "2.bbbb"}, body

        judge = self.judge(answer)
        guard = self.guard(judge)
        thread = threading.Thread(target=guard.check, args=(URL + "slow",))
        thread.start()
        waiting.wait(PATIENT)
        self.assertFalse(guard.check(URL))
        gate.set()
        thread.join()
        self.assertEqual(guard.check(URL).source, "cache")
        self.assertEqual(guard.check(URL + "slow").source, "lookup")

    def test_it_is_bounded_in_number_length_and_time(self):
        judge = self.judge()
        guard = self.guard(judge, cache_entries=2)
        for path in "abc":
            guard.check(f"https://example.com/{path}")
        self.assertEqual(len(guard._cache), 2)
        self.assertEqual(guard.check("https://example.com/a").source, "lookup")
        long = "https://example.com/" + "x" * 4000
        self.assertEqual([guard.check(long).source for _ in range(2)], ["lookup", "lookup"])
        for options in ({"cache_seconds": 0}, {"cache_entries": 0}):
            never = self.guard(judge, **options)
            self.assertEqual([never.check(URL).source for _ in range(2)], ["lookup", "lookup"])
        brief = self.guard(judge, cache_seconds=1000)
        brief.check(URL)
        with unittest.mock.patch.object(pagegate_guard.time, "monotonic", lambda at=time.monotonic() + 1001: at):
            self.assertIsNone(brief._find(("GET", URL)))

    def test_an_answer_that_does_not_name_its_data_is_not_cached(self):
        judge = self.judge(lambda url, method: (200, {}, verdict()(url)[2]))
        guard = self.guard(judge)
        self.assertEqual([guard.check(URL).source for _ in range(2)], ["lookup", "lookup"])

    def test_a_failure_is_not_cached(self):
        answers = iter([(500, {}, "{}"), verdict()])
        guard = self.guard(self.judge(lambda url, method: next(answers)))
        self.assertRefused(guard.check(URL), "status_500")
        self.assertTrue(guard.check(URL))


class Reports(Case):
    def test_every_decision_is_reported_once(self):
        judge = self.judge(lambda url, method: verdict("flag" if "flag" in url else "allow"))
        told, lines = [], []
        guard = self.guard(judge, on_decision=told.append, log=lines.append, approve=lambda _: True)
        guard.check(URL)
        guard.enforce(URL)
        guard.enforce(URL + "flag")
        guard.check(URL, "bad method")
        guard.refuse("https://x.example/", "CONNECT", "inside_address", "x is 10.0.0.1")
        self.assertEqual([one.source for one in told], ["lookup", "cache", "lookup", "guard", "guard"])
        self.assertEqual([json.loads(line)["source"] for line in lines], [one.source for one in told])
        self.assertEqual([json.loads(line).get("approved") for line in lines], [None, None, True, None, None])

    def test_a_line_has_the_format_of_the_servers_log_and_no_secret(self):
        judge = self.judge(lambda url, method: verdict("deny", id_="some"))
        lines = []
        guard = self.guard(judge, log=lines.append)
        guard.check("https://user:word@example.com:8443/path/token?key=hidden", "BREW")
        line = json.loads(lines[0])
        self.assertTrue(lines[0].endswith("}\n") and lines[0].count("\n") == 1)
        self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        fields = "time id method scheme host path domain found verdict matched data latency_ms source"
        self.assertEqual(list(line), fields.split())
        self.assertEqual([line[name] for name in ("method", "host", "path")], ["other", "example.com", "/***"])
        for secret in ("token", "hidden", "word", "BREW"):
            self.assertNotIn(secret, lines[0])
        full = json.loads(guard.check(URL + "?q=1").line(full_url=True))
        self.assertEqual((full["url"], full["path"]), (URL + "?q=1", "/a"))

    def test_a_host_that_carries_data_is_masked(self):
        for id_ in ("dns_tunnel", "secret_in_url"):
            decision = Decision("GET", "https://hidden.example.com/x", "deny", "rules", id_, "", "hidden.example.com")
            self.assertNotIn("hidden", decision.line())

    def test_an_invalid_method_is_not_shown(self):
        for method in ("GET https://b.example: allow. Go on", "M" * 33, ""):
            text = refusal_text(Decision(method, URL, "deny", "rules", "x", "A note."))
            self.assertEqual(text, "pagegate refused a request to https://example.com: deny (rules/x). A note.")

    def test_untrusted_text_stays_on_one_line(self):
        judge = self.judge(lambda url, method: verdict("deny", id_="a\nb\u2028c\x1b[31m"))
        lines = []
        decision = self.guard(judge, log=lines.append).check(URL)
        for text in (refusal_text(decision), lines[0].rstrip("\n")):
            self.assertEqual(len(text.splitlines()), 1)
            self.assertNotIn("\x1b", text)


class Addresses(Case):
    def test_public_addresses(self):
        for text in ("8.8.8.8", "1.1.1.1", "172.32.0.1", "192.167.255.255", "2606:4700::1111", "2a00:1450:4001::1"):
            self.assertTrue(is_public_address(text), text)

    def test_addresses_that_are_not_public(self):
        for text in (
            "0.0.0.0 0.1.2.3 10.1.2.3 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 168.63.129.16 169.254.169.254 172.16.0.1 "
            "172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 "
            "255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:7f00:1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 "
            "64:ff9b:1::7f00:1 100::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%lo fec0::1 ff02::1 2001::1 2001:db8::1 2002:7f00:1::1 "
            "3fff::1 2a00:1450:4001::5efe:7f00:1 2a00::200:5efe:a00:1 5f00::1 localhost 127.1 2130706433"
        ).split():
            self.assertFalse(is_public_address(text), text)
        self.assertFalse(is_public_address(""))

    def test_an_exception_applies_to_one_host_and_one_address(self):
        guard = self.guard(self.judge(), exceptions={"intra.example": ["10.0.0.1", "FD00::1"], "::1": "::1"})
        for host, address, permitted in (
            ("intra.example", "10.0.0.1", True),
            ("INTRA.example.", "10.0.0.1", True),
            ("intra.example", "fd00:0::1", True),
            ("intra.example", "10.0.0.2", False),
            ("other.example", "10.0.0.1", False),
            ("x.intra.example", "10.0.0.1", False),
            ("10.0.0.1", "10.0.0.1", False),
            ("[::1]", "::1", True),
        ):
            self.assertIs(guard.permits(host, address), permitted, (host, address))


class Opener(Case):
    """The sites are at 127.0.0.1. Names under .example are exceptions, so that they can be reached there."""

    def setUp(self):
        super().setUp()
        self.origin = Origin()
        self.addCleanup(self.origin.close)
        self.world = self.judge(lambda url, method: self.judgment(url, method))
        self.names = {name: "127.0.0.1" for name in ("good.example", "good2.example", "bad.example")}
        self.exceptions = dict(self.names)
        resolver = resolving(self.names)
        resolver.__enter__()
        self.addCleanup(resolver.__exit__, None, None, None)

    @staticmethod
    def judgment(url, method):
        host = url.split("/")[2].split(":")[0]
        return verdict("allow" if host.startswith("good") and "login" not in url and method == "GET" else "deny", id_="by_test")

    def opener(self, **options):
        return self.guard(self.world, exceptions=self.exceptions, **options).opener()

    def at(self, host, path="/"):
        return f"http://{host}:{self.origin.port}{path}"

    def assertOpenRefused(self, request, id_="by_test", opener=None):
        with self.assertRaises(RefusedError) as caught:
            (opener or self.opener()).open(request, timeout=PATIENT)
        self.assertEqual(caught.exception.id, id_)
        return caught.exception

    def test_cell_page(self):
        with self.opener().open(self.at("good.example", "/a%20b?q=%41#x"), timeout=PATIENT) as response:
            self.assertEqual(response.read(), b"page")
        self.assertEqual(self.world.asked, [f"GET {self.at('good.example', '/a%20b?q=%41#x')}"])
        self.assertEqual(self.origin.asked, ["GET good.example /a%20b?q=%41"])
        for path in ("/login", "/%6Cogin-login"):
            self.assertOpenRefused(self.at("good.example", path))
        self.assertOpenRefused(self.at("bad.example"))
        self.assertEqual(len(self.origin.asked), 1)

    def test_cell_redirect_hop(self):
        for status in (301, 302, 303, 307, 308):
            self.origin.asked.clear()
            self.origin.pages = {
                "/near": (status, {"location": "/login"}, ""),
                "/far": (status, {"location": self.at("bad.example", "/x")}, ""),
                "/twice": (status, {"location": self.at("good2.example", "/near")}, ""),
                "/inside": (status, {"location": f"http://127.0.0.1:{self.world.port}/"}, ""),
                "/fine": (status, {"location": self.at("good2.example", "/page")}, ""),
            }
            for path in ("/near", "/far", "/twice", "/inside"):
                try:
                    self.assertOpenRefused(self.at("good.example", path))
                except urllib.error.HTTPError as error:
                    # Before Python 3.11 urllib does not follow this status.
                    self.assertEqual((status, error.code, sys.version_info < (3, 11)), (308, 308, True))
            reached = {line for line in self.origin.asked if "bad.example" in line or "login" in line or "127.0.0.1" in line}
            self.assertEqual(reached, set(), status)
            if status != 308 or sys.version_info >= (3, 11):
                self.assertEqual(self.opener().open(self.at("good.example", "/fine")).read(), b"page")

    def test_a_body_ends_at_its_declared_length(self):
        body = b"GET /login HTTP/1.1\r\nHost: good.example\r\n\r\n"
        for name, value in (("Content-Length", "0"), ("content-length", "3"), (b"Content-Length", "0"), ("Transfer-Encoding", "identity")):
            request = urllib.request.Request(self.at("good.example", "/fine"), data=body, method="GET")
            request.headers[name] = value
            self.assertEqual(self.opener().open(request).read(), b"page")
            sent = {header.lower(): value for header, value in self.origin.headers[-1].items()}
            self.assertEqual((sent["content-length"], sent.get("transfer-encoding")), (str(len(body)), None))

    def test_a_body_must_have_its_declared_length(self):
        body = b"0123456789GET /login HTTP/1.1\r\nHost: good.example\r\n\r\n"
        bodies = (lambda: io.BytesIO(body), lambda: [body[:10], body[10:]], lambda: iter([body]), lambda: io.StringIO(body.decode()))

        def opened(data, headers):
            request = urllib.request.Request(self.at("good.example", "/fine"), data=data, method="GET", headers=headers)
            return self.opener().open(request).read()

        for make in bodies:
            for size in (0, 10, len(body) - 1, len(body) + 1):
                self.assertRaisesRegex(ValueError, "Content-Length", opened, make(), {"Content-Length": str(size)})
            twice = {"Content-Length": "10", "Transfer-Encoding": "chunked"}
            for headers in (twice, {"Content-Length": "+10"}, {"Transfer-Encoding": "identity"}, {"Content_Length": "10, 10"}):
                self.assertRaisesRegex(ValueError, "Content-Length", opened, make(), headers)
        self.assertFalse(any("/login" in line for line in self.origin.asked))
        self.origin.asked.clear()
        for make in bodies:
            self.assertEqual(opened(make(), {"Content-Length": str(len(body))}), b"page")
            self.assertEqual(self.origin.headers[-1]["Content-Length"], str(len(body)))
        self.assertEqual(self.origin.asked, ["GET good.example /fine"] * len(bodies))
        opened(array.array("B", body), {"Content-Length": "10"})
        self.assertEqual(self.origin.headers[-1]["Content-Length"], str(len(body)))

    def test_an_invalid_header_name_is_not_sent(self):
        for name in ("X-HTTP-Method-Override ", "X A", "X\tA", "X\xffA", ""):
            with self.assertRaises(ValueError):
                self.opener().open(urllib.request.Request(self.at("good.example"), headers={name: "DELETE"}))
        self.assertEqual(self.origin.connections, 0)

    def test_a_page_with_a_refresh_or_script_redirect_is_text_and_opens_nothing(self):
        leads = f'<meta http-equiv="refresh" content="0;url={self.at("bad.example")}"><script>location="/login"</script>'
        refresh = {"refresh": f"0;url={self.at('bad.example')}", "link": f"<{self.at('bad.example')}>; rel=preload"}
        self.origin.pages = {"/": (200, refresh, leads)}
        self.assertEqual(self.opener().open(self.at("good.example")).read().decode(), leads)
        self.assertEqual(len(self.origin.asked), 1)

    def test_cell_method(self):
        opener = self.opener()
        self.assertOpenRefused(urllib.request.Request(self.at("good.example"), data=b"x"), opener=opener)
        for method in ("POST", "post", "PUT", "DELETE", "HEAD"):
            self.assertOpenRefused(urllib.request.Request(self.at("good.example"), method=method), opener=opener)
        hidden = urllib.request.Request(self.at("good.example"), headers={"X-HTTP-Method": "GET"})
        hidden.add_unredirected_header("X-HTTP-Method", "DELETE")
        self.assertOpenRefused(hidden, opener=opener)
        for name in ("X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method", "X_HTTP_Method_Override", b"X-HTTP-Method"):
            self.assertOpenRefused(urllib.request.Request(self.at("good.example"), headers={name: "DELETE"}), opener=opener)
        self.assertEqual(self.origin.connections, 0)
        self.world.judge = lambda url, method: verdict()
        for status in (307, 308):
            self.origin.pages = {"/": (status, {"location": "/elsewhere"}, "")}
            request = urllib.request.Request(self.at("good2.example"), data=b"x")
            self.assertRaises(urllib.error.HTTPError, self.opener().open, request)
            self.assertEqual(self.origin.asked.pop(), "POST good2.example /")

    def test_cell_download(self):
        folder = temporary_folder(self)
        before = urllib.request._opener
        self.addCleanup(urllib.request.install_opener, before)
        urllib.request.install_opener(self.opener())
        file, _ = urllib.request.urlretrieve(self.at("good.example", "/file.zip"), os.path.join(folder, "file"))
        self.assertEqual(pathlib.Path(file).read_bytes(), b"page")
        self.assertRaises(RefusedError, urllib.request.urlretrieve, self.at("bad.example", "/file.zip"))
        self.assertRaises(RefusedError, urllib.request.urlopen, self.at("bad.example"))

    def test_cell_rebinding_name(self):
        # First an allowed address, then an internal one: each connection uses the address that was checked for it.
        answers = iter(["127.0.0.1", "127.0.0.2", "127.0.0.1"])
        self.names["good.example"] = lambda: next(answers)
        opener = self.opener()
        self.assertEqual(opener.open(self.at("good.example")).read(), b"page")
        self.assertOpenRefused(self.at("good.example"), "inside_address", opener)
        self.assertEqual(opener.open(self.at("good.example")).read(), b"page")
        self.assertEqual(self.origin.connections, 2)
        self.assertEqual(len(self.world.asked), 1, "the verdict on the name was kept, the look at the address was not")

    def test_a_redirect_to_a_name_that_became_internal_is_refused(self):
        self.exceptions["good2.example"] = "127.0.0.9"
        self.origin.pages = {"/": (302, {"location": self.at("good2.example")}, "")}
        self.assertOpenRefused(self.at("good.example"), "inside_address")
        self.assertEqual(self.origin.connections, 1)

    def test_names_with_internal_addresses(self):
        self.world.judge = lambda url, method: verdict()
        for address in (
            "127.0.0.1 0.0.0.0 10.0.0.1 169.254.169.254 ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: fe80::1"
        ).split():
            self.names["inside.example"] = address
            self.assertOpenRefused(self.at("inside.example"), "inside_address")
        guard = self.guard(self.world)
        self.assertTrue(guard.check(self.at("mixed.example")))
        with unittest.mock.patch.object(socket.socket, "connect", side_effect=AssertionError("a connection was made")):
            for addresses in (["93.184.216.34", "127.0.0.1"], ["2606:4700::1111", "fe80::1"]):
                self.names["mixed.example"] = addresses
                self.assertOpenRefused(self.at("mixed.example"), "inside_address", guard.opener())

    def test_a_connection_to_another_address_is_not_used(self):
        guard = self.guard(self.world, exceptions=self.exceptions)
        self.assertTrue(guard.check(self.at("good.example")))
        with unittest.mock.patch.object(socket.socket, "getpeername", lambda _: ("10.0.0.1", 80)):
            self.assertOpenRefused(self.at("good.example"), "inside_address", guard.opener())
        self.assertEqual(self.origin.asked, [])

    def test_hosts_that_are_addresses(self):
        self.world.judge = lambda url, method: verdict(domain="127.0.0.1")
        with unittest.mock.patch.object(pagegate_guard, "_is_about", return_value=True):
            for host in ("127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0", "[::1]", "[::ffff:127.0.0.1]", "[::]"):
                self.assertOpenRefused(self.at(host), "inside_address")
        self.assertEqual(self.origin.connections, 0)

    def test_urls_that_clients_parse_differently(self):
        port = self.origin.port
        self.world.judge = lambda url, method: verdict()
        for url in (
            f"http://good.example:{port}@bad.example:{port}/",
            f"http://good.example\\@bad.example:{port}/",
            f"http://bad.example:{port}\\@good.example/",
            f"http://good.example:{port}\\.bad.example/",
            f"http://bad%2eexample:{port}/",
            f"http://b\u00e4d.example:{port}/",
            f"http://bad\u3002example:{port}/",
            f"http://bad.example:{port}/ x",
            f"http://bad.example:{port}/\tx",
            f"http://bad.ex\nample:{port}/",
            f"http://bad.example:{port}/\u00e4",
            f"http:///bad.example:{port}/",
            f"http:bad.example:{port}/",
            f"http://[::1%25lo]:{port}/",
            f"http://bad.example:{port}:80/",
            "http:///",
        ):
            try:
                with self.assertRaises((RefusedError, urllib.error.URLError, ValueError)):
                    self.opener().open(url, timeout=PATIENT)
            finally:
                self.assertEqual(self.origin.connections, 0, url)

    def test_paths_that_sites_parse_differently(self):
        self.world.judge = lambda url, method: verdict()
        for path in ("/a/../b", "/a/.", "/..", "/a/%2e%2E/b", "/a/..%2fb", "/a%5c..%5cb", "/a/..;/b", "/a\\b", "/a#b#c", "/a?b#c#d"):
            self.assertOpenRefused(self.at("good.example", path), "ambiguous_path")
        self.assertEqual(self.origin.connections, 0)
        self.assertEqual(self.world.asked, [])
        for path in ("/.well-known/x", "/..a/b..", "/a/.../b", "/a?b=/../c", "/a#b", "/%2ea"):
            with self.opener().open(self.at("good.example", path), timeout=PATIENT) as page:
                self.assertEqual(page.status, 200)

    def test_other_schemes(self):
        secret = os.path.join(temporary_folder(self), "secret")
        pathlib.Path(secret).write_text("secret")
        for url in (f"file://{secret}", f"file://localhost{secret}", f"ftp://127.0.0.1:{self.origin.port}/", "data:,x", "DATA:,x", "unknown:x"):
            self.assertOpenRefused(url, "request_target")
            for status in (301, 302, 303, 307):
                self.origin.pages = {"/": (status, {"location": url}, "")}
                self.assertOpenRefused(self.at("good.example"), "request_target")

    def test_a_request_whose_headers_contradict_its_target(self):
        here = self.at("good.example")
        request = urllib.request.Request(here, headers={"Host": "bad.example"})
        self.assertOpenRefused(request, "host_header")
        request = urllib.request.Request(here)
        request.set_proxy(f"127.0.0.1:{self.origin.port}", "http")
        self.assertOpenRefused(request, "host_header")
        request = urllib.request.Request("https://good.example/")
        request.set_proxy(f"127.0.0.1:{self.origin.port}", "https")
        self.assertOpenRefused(request, "host_header")
        request = urllib.request.Request(here)
        request.host = f"bad.example:{self.origin.port}"
        self.assertOpenRefused(request, "host_header")
        request = urllib.request.Request(here)
        request.selector = "/login"
        self.assertOpenRefused(request, "host_header")
        request = urllib.request.Request(here, headers={"Host": f"good.example:{self.origin.port}"})
        request.add_unredirected_header("Host", "bad.example")
        self.assertOpenRefused(request, "host_header")
        for name in ("X-Original-URL", "X-Rewrite-Url"):
            self.assertOpenRefused(urllib.request.Request(here, headers={name: "/login"}), "host_header")
        opener = self.opener()
        opener.add_handler(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{self.origin.port}"}))
        self.assertOpenRefused(here, "host_header", opener)
        self.assertEqual(self.origin.connections, 0)

    def test_requests_use_no_proxy_of_the_environment(self):
        proxy = Origin()
        self.addCleanup(proxy.close)
        names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        with unittest.mock.patch.dict(os.environ, {name: f"http://127.0.0.1:{proxy.port}" for name in names}):
            self.assertEqual(self.opener().open(self.at("good.example")).read(), b"page")
        self.assertEqual((proxy.connections, self.origin.connections), (0, 1))

    def test_an_alternative_service_is_not_used(self):
        other = Origin()
        self.addCleanup(other.close)
        service = {"alt-svc": f'h2=":{other.port}"; ma=60, h3=":{other.port}"', "alternate-protocol": f"{other.port}:quic"}
        self.origin.pages = {"/": (200, service, "page")}
        opener = self.opener()
        for _ in range(2):
            self.assertEqual(opener.open(self.at("good.example")).read(), b"page")
        self.assertEqual((self.origin.connections, other.connections), (2, 0))

    def test_keys_are_sent_only_to_their_server(self):
        self.origin.pages = {"/": (302, {"location": self.at("good2.example", "/there")}, "")}
        headers = {"Authorization": "Bearer site", "Cookie": "session=1", "X-Other": "kept"}
        self.opener().open(urllib.request.Request(self.at("good.example"), headers=headers))
        first, second = self.origin.headers
        for seen in (first, second):
            self.assertNotIn(KEY, json.dumps(seen))
        self.assertIn("Authorization", first)
        self.assertEqual({"Authorization", "Cookie"} & set(second), set())
        self.assertEqual(second["X-Other"], "kept")

    def test_without_pagegate_nothing_is_opened(self):
        self.world.close()
        for options in ({}, {"approve": lambda _: True}):
            self.assertOpenRefused(self.at("good.example"), "unreachable", self.opener(timeout_seconds=2, **options))
        for answer in ((401, {}, "{}"), (403, {}, "{}"), (429, {"retry-after": "60"}, "{}"), (503, {"retry-after": "60"}, "{}")):
            self.world = self.judge(lambda url, method: answer)
            self.assertOpenRefused(self.at("good.example"), f"status_{answer[0]}")
        self.assertEqual(self.origin.connections, 0)

    def test_tls_of_the_sites_is_verified(self):
        folder = temporary_folder(self)
        file = certificate(folder, "DNS:good.example")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        site = Origin(tls=context)
        self.addCleanup(site.close)
        guard = self.guard(self.world, exceptions=self.exceptions)
        trusting = ssl.create_default_context(cafile=file)
        url = f"https://good.example:{site.port}/"
        self.assertEqual(guard.opener(trusting).open(url).read(), b"page")
        self.assertRaises(urllib.error.URLError, guard.opener().open, url)
        other = f"https://good2.example:{site.port}/"
        self.assertRaises(urllib.error.URLError, guard.opener(trusting).open, other)
        self.assertEqual(len(site.asked), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
