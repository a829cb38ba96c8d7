"""A server that speaks Google Cloud Storage's XML interface, for tests, over HTTP.

No server of Google's own can be had here, and the emulators on PyPI and npm speak JSON. The XML interface is S3's in
other words (cloud.google.com/storage/docs/xml-api/reference-headers): extension headers begin with `x-goog-`, a write
on condition names a generation, 0 where there must be none, and requests carry a bearer's token. So words are all that
is translated, before the S3 server of the other tests. What is Google's own beyond that, as its tokens, is not here.

`python -m tests.google_storage PORT` runs one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.object_server import Application, ObjectServer, main

TOKEN = "hidden-from-all"
_GOOGLE, _AMAZON = "HTTP_X_GOOG_", "HTTP_X_AMZ_"
_CONDITION = f"{_GOOGLE}IF_GENERATION_MATCH"
_AMAZON_OWNER = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
"""Whose the bucket is behind; nobody looks at the signature there."""


@dataclass
class GoogleServer(ObjectServer):
    """A server in a process of its own."""

    module: str = "tests.google_storage"

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to get at it."""
        return {
            "GOOGLE_BASE_URL": f"http://127.0.0.1:{self.port}",
            "GOOGLE_BEARER_TOKEN": TOKEN,
            "MIDSTREAM_STORE_PATIENCE": "2",
        }


@dataclass(frozen=True)
class XmlInterface:
    """Google's words before an application that knows Amazon's."""

    application: Application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ.get("HTTP_AUTHORIZATION", "").startswith("AWS4"):  # The server makes its own bucket.
            return self.application(environ, start_response)
        if environ.pop("HTTP_AUTHORIZATION", "") != f"Bearer {TOKEN}":
            body = b"<Error><Code>AuthenticationRequired</Code><Message>Authentication required.</Message></Error>"
            start_response("401 Unauthorized", [("Content-Length", str(len(body)))])
            return [body]
        environ["HTTP_AUTHORIZATION"] = _AMAZON_OWNER
        for name in ("RAW_URI", "REQUEST_URI"):  # Google's clients write a bucket's hyphens otherwise.
            bucket, slash, rest = environ[name][1:].partition("/")
            environ[name] = f"/{bucket.replace('%2D', '-')}{slash}{rest}"
        condition = environ.pop(_CONDITION, None)
        if condition is not None:
            assert condition == "0", "only what there is not yet is written on condition"
            environ["HTTP_IF_NONE_MATCH"] = "*"
        theirs = {name: environ.pop(name) for name in list(environ) if name.startswith(_GOOGLE)}
        environ |= {name.replace(_GOOGLE, _AMAZON): value for name, value in theirs.items()}

        def respond(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            ours = [(name.lower().replace("x-amz-", "x-goog-"), value) for name, value in headers]
            return start_response(status, [*ours, ("x-goog-generation", "1")], *rest)

        return self.application(environ, respond)


if __name__ == "__main__":
    main(int(sys.argv[1]), dialect=XmlInterface)
