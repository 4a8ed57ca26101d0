# SPDX-License-Identifier: Apache-2.0
"""What the operator reads of whatever answers at a supervisor's port, as Hypothesis makes it up."""

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dtjob.plan.seen.report import read_report
from dtjob.status_client import LONGEST, NoStatus, read_status
from tests.unit.fuzzed import TEXTS, VALUES, fuzzed
from tests.unit.operator.answering import saying, serving

FIRST_LINES = st.sampled_from((
    "HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200", "HTTP/1.0 200 OK", "HTTP/1.1 100 Continue",
    "HTTP/1.1 101 Switching Protocols", "HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified", "HTTP/1.1 999 X",
    "HTTP/1.1 -1 X", "HTTP/9.9 200 OK", "HTTP/1.1 ٣٠٠ OK", "GET / HTTP/1.1", "", "\x00",
))  # fmt: skip
FIELDS = st.sampled_from((
    "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Upgrade", "Set-Cookie",
    "Location", "Trailer", "Expect", "X", "",
))  # fmt: skip
WORDS = st.sampled_from((
    "chunked", "gzip, chunked", "identity", "gzip", "deflate", "br", "close", "keep-alive", "h2c", "websocket", "a=b",
    "$x=\x01; Path=/; expires=never", "-1", "0x10", "9" * 5000, "http://[::1", "text/plain; charset=\x00", "\udcff",
))  # fmt: skip
CHUNKS = st.sampled_from((
    b"2\r\n{}\r\n0\r\n\r\n", b"-2\r\n{}\r\n", b"f" * 40 + b"\r\n", b"2;x=y\r\n{}\r\n0\r\nA: b\r\n\r\n", b"\r\n",
))  # fmt: skip
TOO_LONG = b" " * LONGEST + b"{}"
BODIES = st.one_of(
    VALUES.map(lambda one: json.dumps(one).encode()),
    st.dictionaries(TEXTS, VALUES, max_size=3).map(lambda one: json.dumps(one).encode()),
    st.builds(lambda n: b'{"a":' * n + b"1" + b"}" * n, st.sampled_from((3, 12, 4000))),
    st.sampled_from((TOO_LONG, TOO_LONG[2:])),
    CHUNKS,
    st.binary(),
)


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """An answer of HTTP, whole or in part, or any bytes."""
    body = draw(BODIES)
    lengths = st.sampled_from((str(len(body)), str(len(body) + 1), "0"))
    fields = draw(st.lists(st.tuples(FIELDS, st.one_of(WORDS, lengths, TEXTS)), max_size=4))
    lines = [draw(FIRST_LINES), *(f"{name}: {value}" for name, value in fields)]
    ends = draw(st.sampled_from(("\r\n", "\r\n", "\n")))
    whole = (ends.join(lines) + 2 * ends).encode(errors="surrogatepass") + body
    sent: bytes = draw(st.sampled_from((whole, whole, whole, whole[: len(whole) // 2], body)))
    return sent


@fuzzed(60)
@given(answer=answers())
def test_any_answer_is_a_status_or_none(answer: bytes) -> None:
    """Nothing but NoStatus is raised, and a report that is kept is bounded."""
    raised: list[Any] = []

    async def play() -> dict[str, Any] | str:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        async with serving(saying(answer)) as port:
            try:
                return await read_status("127.0.0.1", port, answer_seconds=60.0)
            except NoStatus as error:
                return error.reason

    found = asyncio.run(play())
    assert raised == []
    if isinstance(found, str):
        assert found in ("BadAnswer", "NoAnswer")
    else:
        assert TOO_LONG not in answer
        assert len(json.dumps(read_report(found))) <= LONGEST
