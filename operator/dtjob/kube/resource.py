"""Which resource a call is about, for metrics."""

from __future__ import annotations


def resource_of(path: str) -> str:
    """The resource in a path of the API, with its subresource: `pods`, `distributedtrainingjobs/status`;
    `<discovery>` where there is none."""
    _, root, *rest = path.partition("?")[0].split("/")
    rest = rest[2:] if root == "apis" else rest[1:]
    if not rest:  # what a version of an API serves
        return "<discovery>"
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return "/".join((rest[0], *rest[2:3]))
