# SPDX-License-Identifier: Apache-2.0
"""Calls to an API server that is not ready for them."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from tools.cluster.rest import Api, ApiError


class TooEarly(BaseHTTPRequestHandler):
    """Says of every third call alone that it came in time."""

    calls: list[str] = []  # noqa: RUF012

    def _answer(self) -> None:
        self.calls.append(self.command)
        status = 200 if len(self.calls) % 3 == 0 else 429
        text = json.dumps({"items": [], "message": "storage is (re)initializing"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    TooEarly.calls.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), TooEarly) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        config = {"clusters": [cluster], "users": [{"user": {"token": "t"}}]}
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        yield Api(tmp_path / "kubeconfig")
        server.shutdown()


def test_a_call_that_comes_too_early_is_made_again(api: Api) -> None:
    assert api.list("pods", "default") == []
    assert TooEarly.calls == ["GET"] * 3


def test_an_eviction_that_a_budget_forbids_is_answered(api: Api) -> None:
    with pytest.raises(ApiError, match="429"):
        api.call("POST", "api/v1/namespaces/default/pods/a/eviction", {})
    assert TooEarly.calls == ["POST"]
