"""Signed URLs: what they open, what they do not, and what may be attached (specs §6)."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.auth.bearer import issue_token
from config.errors import InvalidRequest
from conversations import attachments
from conversations.api.byte_ranges import Unsatisfiable, parse_range
from conversations.attachments import StoredObject, parse_signed_url, sign_url, signed_urls
from tests.conversations.attachments.uploads import fetch, upload
from tests.support.client import Client
from tests.support.pictures import picture

pytestmark = pytest.mark.once

OWNER = UUID("0b5c2f0e-6f5e-4b52-9d0a-3a1c8b7d9e01")
PATH = f"agent-inputs/{OWNER}/_/_/{uuid4()}.png"
BASE = "http://127.0.0.1:8000/storage/v1/object/sign"


@pytest.fixture(autouse=True)
def public_url(settings: Any) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:8000"


def token(path: str = PATH, *, key: str = "", algorithm: str | None = "HS256", **claims: Any) -> str:
    now = int(time.time())
    usual = {"url": f"agent-files/{path}", "scope": "download", "iat": now, "exp": now + 60}
    body = {name: value for name, value in (usual | claims).items() if value is not None}
    return jwt.encode(body, key or signed_urls._key(), algorithm=algorithm)


def refuses(url: str, owner: UUID = OWNER) -> bool:
    with pytest.raises(InvalidRequest) as caught:
        parse_signed_url(url, owner_id=owner)
    error = caught.value
    assert (error.status, error.error_code) == (422, "invalid_binary_url")
    assert error.detail == "binary content url must be a valid signed URL"
    return True


# --- what may be attached -----------------------------------------------------------------------


def test_a_signed_url_has_the_seeds_form_and_exactly_four_claims(settings: Any) -> None:
    url = sign_url("agent-files", PATH)
    assert url.startswith(f"{BASE}/agent-files/{PATH}?token=")
    claims = jwt.decode(url.partition("?token=")[2], options={"verify_signature": False})
    assert claims.keys() == {"url", "scope", "iat", "exp"}
    assert (claims["url"], claims["scope"]) == (f"agent-files/{PATH}", "download")
    assert claims["exp"] - claims["iat"] == settings.SIGNED_URL_TTL_S == 3600


def test_what_was_signed_is_parsed_again() -> None:
    assert parse_signed_url(sign_url("agent-files", PATH), owner_id=OWNER) == StoredObject(
        "agent-files", PATH
    )


def test_each_part_is_decoded_once() -> None:
    encoded = PATH.replace("-", "%2D").replace("_", "%5f")
    url = f"{BASE}/agent-files/{encoded}?token={token()}"
    assert parse_signed_url(url, owner_id=OWNER).path == PATH


GOOD = f"{BASE}/agent-files/{PATH}"
WRONG_URLS = {
    "nothing": "",
    "no url": "agent-files",
    "no token": GOOD,
    "empty token": f"{GOOD}?token=",
    "garbled token": f"{GOOD}?token=a.b.c",
    "https for http": GOOD.replace("http:", "https:") + "?token={t}",
    "upper-case scheme": GOOD.replace("http:", "HTTP:") + "?token={t}",
    "no scheme": GOOD.removeprefix("http:") + "?token={t}",
    "another host": GOOD.replace("127.0.0.1", "evil.example") + "?token={t}",
    "another name of the host": GOOD.replace("127.0.0.1", "localhost") + "?token={t}",
    "our host as user information": GOOD.replace(":8000/", ":8000@evil.example/") + "?token={t}",
    "user information": GOOD.replace("http://", "http://u:p@") + "?token={t}",
    "our host as a subdomain": GOOD.replace(":8000/", ":8000.evil.example/") + "?token={t}",
    "another port": GOOD.replace(":8000", ":8001") + "?token={t}",
    "no port": GOOD.replace(":8000", "") + "?token={t}",
    "a longer port": GOOD.replace(":8000", ":80001") + "?token={t}",
    "a port with zeros": GOOD.replace(":8000", ":08000") + "?token={t}",
    "a backslash": GOOD.replace("8000/", "8000\\") + "?token={t}",
    "a space before": " " + GOOD + "?token={t}",
    "a line end behind": GOOD + "?token={t}\n",
    "another bucket": GOOD.replace("agent-files", "other-files") + "?token={t}",
    "public instead of sign": GOOD.replace("/sign/", "/public/") + "?token={t}",
    "a doubled slash": GOOD.replace("/_/", "//_/") + "?token={t}",
    "a doubled slash after the bucket": GOOD.replace("agent-files/", "agent-files//") + "?token={t}",
    "a dot part": GOOD.replace("/_/", "/./_/", 1) + "?token={t}",
    "parts up": GOOD.replace("/_/_/", "/_/../_/") + "?token={t}",
    "an encoded slash": GOOD.replace("/_/_/", "/_%2f_/") + "?token={t}",
    "an encoded way up": GOOD.replace("/_/_/", "/..%2f/_/") + "?token={t}",
    "encoded dots": GOOD.replace("/_/_/", "/%2e%2e/_/") + "?token={t}",
    "doubly encoded": GOOD.replace("-", "%252d") + "?token={t}",
    "a NUL": GOOD + "%00?token={t}",
    "a NUL before the extension": GOOD.replace(".png", "%00.png") + "?token={t}",
    "wide letters": GOOD.replace("agent-inputs", "ａgent-inputs") + "?token={t}",
    "an encoded wide letter": GOOD.replace("agent-inputs", "%EF%BD%81gent-inputs") + "?token={t}",
    "invalid utf-8": GOOD.replace("agent-inputs", "%ffagent-inputs") + "?token={t}",
    "half an escape": GOOD + "%?token={t}",
    "a fragment": GOOD + "?token={t}#x",
    "a fragment before": GOOD + "#?token={t}",
    "two tokens": GOOD + "?token={t}&token={t}",
    "another parameter": GOOD + "?token={t}&download=x.html",
    "another parameter first": GOOD + "?download=x&token={t}",
    "an upper-case parameter": GOOD + "?TOKEN={t}",
    "a longer file": GOOD + ".html?token={t}",
    "another file": GOOD.replace(".png", "0.png") + "?token={t}",
    "much too long": GOOD + "?token={t}" + "a" * 5000,
}


@pytest.mark.parametrize("what", WRONG_URLS)
def test_a_url_that_is_not_exactly_ours_is_refused(what: str) -> None:
    assert refuses(WRONG_URLS[what].replace("{t}", token()))


def test_even_a_matching_token_does_not_excuse_a_crooked_path() -> None:
    for path in (
        f"agent-inputs/{OWNER}/../{uuid4()}/_/a.png",
        f"agent-inputs/{OWNER}/_/_/..",
        f"agent-inputs/{OWNER}/_//a.png",
        f"agent-inputs/{OWNER}/_/a.png",
        f"agent-inputs/{OWNER}/_/_/_/a.png",
        f"agent-inputs/{OWNER}/_/_/a.svg",
        f"agent-inputs/{OWNER}/_/_/a",
        f"other/{OWNER}/_/_/a.png",
        f"agent-inputs/{OWNER}/_/_/ä.png",
        f"agent-inputs/{OWNER}/_/_/a\x00.png",
    ):
        assert refuses(f"{BASE}/agent-files/{path}?token={token(path)}"), path
        assert refuses(f"{BASE}/agent-files/{quote(path)}?token={token(path)}"), path


def test_anothers_url_is_refused_though_it_is_valid() -> None:
    other = uuid4()
    path = PATH.replace(str(OWNER), str(other))
    url = sign_url("agent-files", path)
    assert parse_signed_url(url, owner_id=other).path == path
    assert refuses(url)
    assert refuses(url, UUID(int=OWNER.int >> 4))


def _unsigned(claims: dict[str, Any], header: dict[str, Any]) -> str:
    parts = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in (header, claims)
    )
    return ".".join(parts) + "."


def wrong_tokens(settings: Any) -> dict[str, str]:
    now = int(time.time())
    claims = {"url": f"agent-files/{PATH}", "scope": "download", "iat": now, "exp": now + 60}
    return {
        "expired": token(exp=now - 1),
        "for another path": token(PATH.replace(".png", "1.png")),
        "for another bucket": token(url=f"other/{PATH}"),
        "for the folder": token(url=f"agent-files/agent-inputs/{OWNER}/"),
        "without a url": token(url=None),
        "without an end": token(exp=None),
        "without a beginning": token(iat=None),
        "without a scope": token(scope=None),
        "of another scope": token(scope="upload"),
        "with one claim more": token(sub=str(OWNER)),
        "a url that is a list": token(url=[f"agent-files/{PATH}"]),
        "signed with the login secret": token(key=settings.JWT_SECRET),
        "signed with another": token(key="x" * 64),
        "of another algorithm": token(algorithm="HS512"),
        "of no algorithm": _unsigned(claims, {"alg": "none"}),
        "of no algorithm, in capitals": _unsigned(claims, {"alg": "NONE", "typ": "JWT"}) + "AAAA",
    }


def test_a_token_that_is_not_exactly_ours_is_refused(settings: Any) -> None:
    for what, wrong in wrong_tokens(settings).items():
        assert refuses(f"{GOOD}?token={wrong}"), what
        with pytest.raises(attachments.TokenRefused):
            attachments.verify(wrong, StoredObject("agent-files", PATH))


@given(st.text(max_size=200), st.integers(0, len(GOOD)))
def test_nothing_put_into_a_url_makes_it_another_object(text: str, place: int) -> None:
    whole = f"{GOOD}?token={token()}"
    try:
        found = parse_signed_url(whole[:place] + text + whole[place:], owner_id=OWNER)
    except InvalidRequest:
        return
    assert found.path == PATH


# --- what they open -----------------------------------------------------------------------------


def refused(response: httpx.Response, code: str, error: str) -> bool:
    body = response.json()
    assert response.status_code == 400
    assert body.keys() == {"statusCode", "error", "message"}
    assert (body["statusCode"], body["error"]) == (code, error)
    return True


def test_a_login_token_opens_no_file_and_a_download_token_no_account(client: Client) -> None:
    answer = upload(client, picture())
    login, _ = issue_token(client.user)
    bare, _, download = answer["url"].partition("?token=")
    assert refused(fetch(client, f"{bare}?token={login}"), "400", "InvalidJWT")
    assert refused(fetch(client, f"{bare}?token={client.token}"), "400", "InvalidJWT")
    response = client.http.get("/api/v1/agent/history", headers={"Authorization": f"Bearer {download}"})
    assert response.status_code == 401


def test_refusals_are_shaped_as_supabases(client: Client, settings: Any) -> None:
    one, two = upload(client, picture()), upload(client, picture("PNG"))
    bare, _, valid = one["url"].partition("?token=")
    assert refused(fetch(client, bare), "400", "InvalidJWT")
    assert refused(fetch(client, f"{bare}?token=%00"), "400", "InvalidJWT")
    assert refused(fetch(client, f"{bare}?token={token(one['path'], exp=1)}"), "400", "InvalidJWT")
    assert refused(
        fetch(client, two["url"].partition("?")[0] + f"?token={valid}"), "400", "InvalidSignature"
    )
    gone = one["path"].replace(".jpg", "0.jpg")
    assert refused(fetch(client, sign_url("agent-files", gone)), "404", "NoSuchKey")
    for path in ("../../keys.json", "..%2f..%2fkeys.json", "/etc/passwd", "%00"):
        assert fetch(client, f"{BASE}/agent-files/{path}?token={token(path)}").status_code in (400, 404)


def test_a_valid_token_for_a_path_outside_opens_nothing(client: Client, settings: Any) -> None:
    """Whatever might ever be signed, only our own form of path is read."""
    secret = settings.VAR_DIR / "keys.json"
    assert secret.exists()
    for path in ("../../keys.json", "agent-inputs/../../../keys.json", str(secret)):
        response = fetch(client, f"{BASE}/agent-files/{quote(path, safe='')}?token={token(path)}")
        assert response.status_code in (400, 404), path
        assert b"SECRET" not in response.content


def test_ranges_conditions_and_head(client: Client) -> None:
    data = picture(size=(900, 700))
    url, size = upload(client, data)["url"], len(data)
    assert size > 140_000
    for asked, start, end in (
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=130000-", 130_000, size),
        ("bytes=-7", size - 7, size),
        (f"bytes=-{size * 2}", 0, size),
        (f"bytes=5-{size * 2}", 5, size),
    ):
        part = fetch(client, url, Range=asked)
        assert (part.status_code, part.content) == (206, data[start:end])
        assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
    for asked in (f"bytes={size}-", "bytes=-0"):
        outside = fetch(client, url, Range=asked)
        assert (outside.status_code, outside.headers["content-range"]) == (416, f"bytes */{size}")
    for asked in ("bytes=2-1", "bytes=0-1,5-6", "items=0-1", "bytes=x", "bytes=-"):
        assert fetch(client, url, Range=asked).status_code == 200
    head = fetch(client, url, "HEAD")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(size))
    assert head.headers["accept-ranges"] == "bytes"
    tag, at = head.headers["etag"], head.headers["last-modified"]
    assert fetch(client, url, **{"If-None-Match": tag}).status_code == 304
    assert fetch(client, url, **{"If-Modified-Since": at}).status_code == 304
    assert fetch(client, url, **{"If-Match": '"other"'}).status_code == 412
    assert fetch(client, url, **{"If-Range": tag, "Range": "bytes=0-1"}).status_code == 206
    assert fetch(client, url, **{"If-Range": '"other"', "Range": "bytes=0-1"}).status_code == 200
    assert fetch(client, url, "POST").status_code == 405


@given(st.integers(1, 1000), st.integers(0, 1100), st.integers(0, 1100))
def test_a_range_is_what_a_slice_is(size: int, first: int, last: int) -> None:
    data = bytes(n % 251 for n in range(size))

    def cut(header: str) -> bytes | None:
        try:
            found = parse_range(header, size)
        except Unsatisfiable:
            return b""
        return data[slice(*found)] if found else None

    assert cut(f"bytes={first}-") == data[first:]
    assert cut(f"bytes=-{last}") == (data[-last:] if last else b"")
    if first <= last:
        assert cut(f"bytes={first}-{last}") == data[first : last + 1]


def test_a_users_url_works_for_whoever_has_it_but_is_attached_by_its_owner_only(
    make_client: Callable[..., Client],
) -> None:
    owner, other = make_client(), make_client()
    url = upload(owner, picture())["url"]
    assert fetch(other, url).status_code == 200
    assert parse_signed_url(url, owner_id=owner.user.pk)
    assert refuses(url, other.user.pk)
