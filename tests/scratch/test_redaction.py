"""Secrets go, whatever kind, wherever they stand; code stays. Every sample here is made up on the spot."""

from __future__ import annotations

import base64
import random
import string
import urllib.parse
from collections.abc import Iterator

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scratch import redaction
from scratch.redaction import Redactor, redact_text
from scratch.secret_patterns import PATTERNS

_RANDOM = random.Random(20260101)
ALNUM = string.ascii_letters + string.digits


def r(length: int, alphabet: str = ALNUM) -> str:
    """Random characters, with a digit among them."""
    return "".join(_RANDOM.choice(alphabet) for _ in range(length - 1)) + "7"


HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"
LOWER = string.ascii_lowercase + string.digits


def jwt() -> str:
    parts = [b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"x"}']
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "." + r(43)


def pem(kind: str = "RSA PRIVATE KEY", newline: str = "\n") -> tuple[str, str]:
    body = newline.join(r(64) for _ in range(12))
    return f"-----BEGIN {kind}-----{newline}{body}{newline}-----END {kind}-----", body


TOKENS: dict[str, list[str]] = {
    "aws_key": ["AKIA" + r(16, UPPER), "ASIA" + r(16, UPPER)],
    "gcp_key": ["AIza" + r(35), "GOCSPX-" + r(28)],
    "gcp_token": ["ya29." + r(60)],
    "azure_key": [r(3) + "8Q~" + r(34)],
    "digitalocean_token": ["dop_v1_" + r(64, HEX)],
    "alibaba_key": ["LTAI" + r(20)],
    "tencent_key": ["AKID" + r(32)],
    "databricks_token": ["dapi" + r(32, HEX)],
    "vault_token": ["hvs." + r(90)],
    "terraform_token": [r(14) + ".atlasv1." + r(66)],
    "pulumi_token": ["pul-" + r(40, HEX)],
    "heroku_key": ["HRKU-" + r(36)],
    "planetscale_key": ["pscale_tkn_" + r(40)],
    "tailscale_key": ["tskey-auth-" + r(12) + "-" + r(32)],
    "supabase_key": ["sbp_" + r(40, HEX), "sb_secret_" + r(30)],
    "cloudflare_key": ["v1.0-" + r(24, HEX) + "-" + r(146, HEX)],
    "dynatrace_token": ["dt0c01." + r(24, UPPER) + "." + r(64, UPPER)],
    "github_token": ["ghp_" + r(36), "gho_" + r(36), "ghs_" + r(36), "github_pat_" + r(22) + "_" + r(59)],
    "gitlab_token": ["glpat-" + r(20), "glrt-" + r(20), "GR1348941" + r(20)],
    "bitbucket_token": ["ATBB" + r(32)],
    "atlassian_token": ["ATATT3" + r(180)],
    "npm_token": ["npm_" + r(36)],
    "pypi_token": ["pypi-AgEIcHlwaS5vcmc" + r(100)],
    "rubygems_key": ["rubygems_" + r(48, HEX)],
    "nuget_key": ["oy2" + r(43, LOWER)],
    "docker_token": ["dckr_pat_" + r(27)],
    "artifactory_key": ["AKCp" + r(69)],
    "sonar_token": ["squ_" + r(40, HEX)],
    "anthropic_key": ["sk-ant-api03-" + r(93) + "AA", "sk-ant-oat01-" + r(90)],
    "openai_key": ["sk-proj-" + r(74) + "T3BlbkFJ" + r(74), "sk-" + r(20) + "T3BlbkFJ" + r(20)],
    "model_key": ["sk-or-v1-" + r(64, HEX), "sk-" + r(48), "gsk_" + r(52), "xai-" + r(80), "pplx-" + r(48),
                  "nvapi-" + r(64), "csk-" + r(48, LOWER), "tgp_v1_" + r(43), "r8_" + r(37), "fw_" + r(24)],
    "huggingface_token": ["hf_" + r(34), "api_org_" + "".join(_RANDOM.choices(string.ascii_letters, k=34))],
    "langsmith_key": ["lsv2_pt_" + r(32, HEX) + "_" + r(10, HEX)],
    "slack_token": ["xoxb-" + r(12, "0123456789") + "-" + r(24), "xapp-1-" + r(10, UPPER) + "-77-" + r(64, HEX)],
    "slack_webhook": ["hooks.slack.com/services/T" + r(8, UPPER) + "/B" + r(8, UPPER) + "/" + r(24)],
    "discord_webhook": ["/api/webhooks/" + r(18, "0123456789") + "/" + r(68)],
    "telegram_token": [r(10, "0123456789") + ":AA" + r(33), r(9, "0123456789") + ":AA" + r(33)],
    "stripe_key": ["sk_live_" + r(24), "rk_test_" + r(24), "whsec_" + r(32)],
    "square_token": ["sq0atp-" + r(22), "sq0csp-" + r(43)],
    "paypal_token": ["access_token$production$" + r(16, LOWER) + "$" + r(32, HEX)],
    "shopify_token": ["shpat_" + r(32, HEX)],
    "sendgrid_key": ["SG." + r(22) + "." + r(43)],
    "mailgun_key": ["key-" + r(32, HEX)],
    "sentry_token": ["sntrys_eyJ" + r(80), "sntryu_" + r(64, HEX)],
    "grafana_token": ["glsa_" + r(32) + "_" + r(8, HEX), "glc_" + r(40)],
    "newrelic_key": ["NRAK-" + r(27, UPPER)],
    "postman_key": ["PMAK-" + r(24, HEX) + "-" + r(34, HEX)],
    "linear_key": ["lin_api_" + r(40)],
    "notion_token": ["secret_" + r(43), "ntn_" + r(11, "0123456789") + r(35)],
    "figma_token": ["figd_" + r(40)],
    "doppler_token": ["dp.pt." + r(43)],
    "onepassword_token": ["ops_eyJ" + r(250)],
    "facebook_token": ["EAA" + r(120)],
    "netlify_token": ["nfp_" + r(36)],
    "age_key": ["AGE-SECRET-KEY-1" + r(58, UPPER)],
    "jwt": [jwt()],
}  # fmt: skip
PASSWORD = "t8!Kq2zvW9"
IN_CONTEXT: dict[str, list[tuple[str, str]]] = {
    "azure_key": [(f"AccountName=a;AccountKey={(k := r(86) + '==')};End", k)],
    "azure_token": [(f"https://a.blob/x?sv=1&sig={(k := r(43))}%3D&se=2", k)],
    "private_key": [
        pem(),
        pem("PRIVATE KEY"),
        pem("OPENSSH PRIVATE KEY", "\r\n"),
        pem("EC PRIVATE KEY", "\\n"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{(k := r(64))}\n{r(64)}\n", k),
        (f"Private-Lines: 2\n{(k := r(64))}\n{r(64)}\n", k),
        (base64.b64encode(pem()[0].encode()).decode(),) * 2,
    ],
    "url_password": [
        (f"postgres://bob:{PASSWORD}@db.internal:5432/x", PASSWORD),
        (f"redis://:{PASSWORD}@cache:6379", PASSWORD),
        ("https://bob:p$$w0rd%21@host/", "p$$w0rd%21"),
        (f"x={urllib.parse.quote('amqp://bob:' + PASSWORD + '@mq', safe='')}", urllib.parse.quote(PASSWORD, safe="")),
    ],
    "authorization": [
        (f"Authorization: Bearer {(k := r(40))}", k),
        (f"curl -H 'authorization: token {(k := r(40))}'", k),
        (f'"Authorization": "Basic {(k := base64.b64encode(b"bob:" + PASSWORD.encode()).decode())}"', k),
    ],
    "assigned_secret": [
        (f'password = "{PASSWORD}"', PASSWORD),
        (f"DB_PASSWORD={PASSWORD}abc\n", PASSWORD),
        (f"  client_secret: {(k := r(32))}\n", k),
        (f'{{"api_key": "{(k := r(32))}"}}', k),
        (f'config["secret_token"] = \'{(k := r(32))}\'', k),
        (f'API_KEY: str = "{(k := r(32))}"', k),
        (f'let accessKey = `{(k := r(40))}`;', k),
        (f'"aws_secret_access_key" => "{(k := r(40))}"', k),
        (f"<password>{PASSWORD}xyz</password>", PASSWORD),
        (f"https://x/y?api_key={(k := r(32))}&b=1", k),
        ("password::S3cretValue9x", "S3cretValue9x"),
        (f"api_key%3D{(k := r(32))}&b", k),
        (f'os.environ.get("SECRET_KEY", "{(k := r(50))}")', k),
    ],
    "card_number": [
        (f"card: {k}", k)
        for k in ("4929 7226 5379 7141", "4929722653797141", "5425-2334-3010-9903", "374245455400126")
    ],
}  # fmt: skip
AROUND = [
    "{}",
    "x = '{}'",
    '{{"a": "{}"}}',
    "see {}, or not",
    "\t{}\n",
    "\u00e9\u4e2d {} \u00e9",
    "curl https://x/?t={}&u=1",
]


@pytest.mark.parametrize("kind", TOKENS)
def test_tokens_go_wherever_they_stand(kind: str) -> None:
    for token in TOKENS[kind]:
        for around in AROUND:
            text = around.format(token)
            redacted, counts = redact_text(text)
            assert token not in redacted, text
            assert f"[redacted:{kind}]" in redacted, (text, redacted)
            assert counts[kind] == 1


@pytest.mark.parametrize("kind", IN_CONTEXT)
def test_secrets_known_by_their_surroundings_go(kind: str) -> None:
    for text, secret in IN_CONTEXT[kind]:
        for prefix in ("", "first line\n", "\u00e9 "):
            redacted, counts = redact_text(prefix + text + "\nlast line")
            assert secret not in redacted, text
            assert secret[10:40] not in redacted or len(secret) < 40
            assert counts[kind] >= 1, (text, redacted)
            assert redacted.count("\n") == (prefix + text).count("\n") + 1
            assert redacted.endswith("last line")


def test_every_pattern_has_a_sample() -> None:
    assert {pattern.kind for pattern in PATTERNS} <= {*TOKENS, *IN_CONTEXT}


CODE = [
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "d41d8cd98f00b204e9800998ecf8427e  file.txt",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    'id = "123e4567-e89b-12d3-a456-426614174000"',
    '"integrity": "sha512-' + base64.b64encode(bytes(range(64))).decode() + '"',
    "token = self.parser.next_token2()",
    "password = settings.DATABASES['default']['PASSWORD']",
    'password = "password123"',
    "secret: ${{ secrets.GITHUB_TOKEN }}",
    "PASSWORD=$DB_PASSWORD",
    'api_key = os.environ["API_KEY"]',
    'token_type = "access_token2"',
    "https://example.com:8080/path@2x.png",
    "git@github.com:user/repo.git",
    "ssh://git@github.com/user/repo.git",
    "https://user@example.com/",
    "mailto:someone@example.com",
    "http://host:80/users/a@b",
    "postgres://{user}:{password}@{host}/x",
    "https://user:$PASSWORD@host/",
    "https://user:<password>@host/",
    "mysql://myuser:mypass@localhost/db",
    "-----BEGIN CERTIFICATE-----\n" + r(64) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + r(64) + "\n-----END PUBLIC KEY-----",
    "def basic_auth(self): return Basic",
    "the bearer of this letter",
    "timestamp 1700000000000000, 4111.1111",
    '"lifetime": 2592000000000000',
    "before_action :authenticate_by_password, :require_valid_rfc822_message",
    "0x4111111111111111",
    "task-list risk-management-platform-for-everyone",
    "desk-top_computers_are_good_for_2_things_at_once",
    "def test_password_is_required_for_user2(self): ...",
    "secret_key_base_for_the_application_in_development",
    "eyJ is how base64 of {\" begins",
    "AKIA is a prefix",
    "pwd = /home/user/project2/src",
    "tokenizer: Qwen2TokenizerFast",
]  # fmt: skip


@pytest.mark.parametrize("text", CODE)
def test_code_stays(text: str) -> None:
    assert redact_text(text)[0] == text


def everything() -> list[str]:
    found = [token for tokens in TOKENS.values() for token in tokens]
    return found + [text for pairs in IN_CONTEXT.values() for text, _ in pairs]


pieces = st.lists(
    st.sampled_from([*everything(), *CODE]) | st.text(max_size=30) | st.sampled_from("\n =:'\"-_.@/"), max_size=8
)


@settings(max_examples=200, deadline=None)
@given(pieces)
@example(["AKIA" + r(16, UPPER), "AKIA" + r(16, UPPER)])
@example(["sbp_" + r(40, HEX), *["GR1348941" + r(20)] * 3, "AKIA" + r(16, UPPER)])
@example(["AKIA" + r(16, UPPER)] * 60)
def test_redacting_twice_changes_nothing_more_and_lines_keep_their_numbers(parts: list[str]) -> None:
    text = "".join(parts)
    once, _ = redact_text(text)
    assert redact_text(once)[0] == once
    assert once.count("\n") == text.count("\n")


def test_json_is_redacted_in_values_and_keys_and_under_telling_keys() -> None:
    redactor = Redactor()
    token, secret = TOKENS["github_token"][0], r(24)
    value = {"a": [{"b": f"x {token}"}], token: 1, "password": secret, "input_tokens": 12, "n": None, "t": (1.5, True)}
    redacted = redactor.json(value)
    text = orjson.dumps(redacted).decode()
    assert token not in text
    assert secret not in text
    assert redactor.json(redacted) == redacted
    assert isinstance(redacted, dict)
    assert redacted["input_tokens"] == 12
    assert redactor.counts == {"assigned_secret": 1, "github_token": 2}


def test_bytes_that_are_no_text_pass_unchanged_but_for_their_secrets() -> None:
    redactor = Redactor()
    noise = bytes(range(256)) * 4
    assert redactor.data(noise) == noise
    token = TOKENS["npm_token"][0].encode()
    assert redactor.data(noise + b" " + token + b" " + noise) == noise + b" [redacted:npm_token] " + noise


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A key of the user's that looks like no key."""
    monkeypatch.setattr(redaction, "_own", ())
    value = "proxy passphrase/for me"
    redaction.know_own_secrets([value, "", "short"])
    yield value
    redaction.know_own_secrets([])  # forget what was remembered with it


@pytest.mark.parametrize("before", ["", "a", "ab", "key: ", "x" * 5000])
def test_keys_of_the_user_go_whatever_they_look_like_and_however_they_are_written(own: str, before: str) -> None:
    for text in (own, urllib.parse.quote(own, safe=""), base64.b64encode(f"{before}{own}!".encode()).decode()):
        redacted, counts = redact_text(f"{before} {text}, and so on")
        assert counts == {"own_key": 1}
        assert text not in redacted
        assert own not in redacted
        assert redact_text(redacted) == (redacted, {})
    assert redact_text("short, and so on") == ("short, and so on", {})


def test_a_key_of_the_user_is_seen_in_what_was_looked_at_before_it_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_own", ())
    text = "some plain words 4711"
    assert redact_text(text)[0] == text
    redaction.know_own_secrets(["plain words"])
    assert redact_text(text)[0] == "some [redacted:own_key] 4711"
    monkeypatch.undo()
    redaction.know_own_secrets([])


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----" * 2_000,
        "-----BEGIN PRIVATE KEY-----\n" + "A" * 200_000,
        "password=" * 20_000,
        "password : a.b.c.d " * 10_000,
        "token" + "_" * 100_000 + "=",
        "://" + "a" * 100_000 + ":" + "b" * 100_000,
        "://a:" * 30_000,
        "eyJ" + "a" * 100_000,
        "eyJhbGciOiJ." * 20_000,
        "bearer " * 30_000,
        "authorization: " * 20_000,
        "4" * 200_000,
        "4111 " * 50_000,
        "sk-" * 60_000,
        "sk-" + "a-" * 60_000,
        "secret = '" + "x1" * 80_000,
        "%3a%2f%2f" * 20_000,
        "LS0tLS1CRUdJTi" * 10_000,
        "hooks.slack.com/services/" * 8_000,
        ":AA" * 60_000,
        "\\n" * 100_000,
        " " * 200_000,
    ],
)
def test_no_text_makes_it_crawl(text: str) -> None:
    import time

    started = time.process_time()
    redact_text(text)
    assert time.process_time() - started < 1.5
