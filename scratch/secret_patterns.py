"""What secrets look like: our table of named patterns, and the last look that tells a live one from a stand-in.

Every pattern begins with a keyword (or has `back` characters before it): literal text of three ASCII characters or more
that a scan finds cheaply. Only there is the pattern itself tried.

Prior work: the rule sets of gitleaks, detect-secrets and GitHub's secret scanning, whose prefixes are public facts;
the patterns and thresholds are ours, measured in tests/bench.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of secret. What group `s` matched is removed, or the whole match if there is no such group."""

    kind: str
    keywords: tuple[str, ...]
    source: str
    """The regular expression; compiled when first tried."""
    accept: Callable[[str], bool]
    back: int = 0
    """How many characters before the keyword the match begins."""
    any_case: bool = False
    """The keywords are lower case and stand for all spellings."""

    @property
    def regex(self) -> re.Pattern[str]:
        return _compiled(self.source)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)


def entropy(text: str) -> float:
    """Shannon entropy, in bits a character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def is_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others, as with card numbers."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _always(_: str) -> bool:
    return True


def _random(bits: float) -> Callable[[str], bool]:
    """Random enough, and with a digit or letters of both cases in a jumble: no word, no name."""
    return lambda value: (any(c.isdigit() for c in value) or _is_jumble(value)) and entropy(value) >= bits


def _is_jumble(value: str) -> bool:
    """Case changes more often than in words joined to a name. One token of 20 letters and digits in 30 has no digit."""
    letters = [c.isupper() for c in value if c.isalpha()]
    changes = sum(one != other for one, other in itertools.pairwise(letters))
    return len(letters) >= 16 and changes * 3 >= len(letters)


def _varied(bits: float) -> Callable[[str], bool]:
    return lambda value: entropy(value) >= bits


_STAND_IN = re.compile(
    r"(?i)example|sample|dummy|change[_-]?me|placeholder|your[_-]|xxx|\*\*\*|\.\.\.|<[^>]*>|\$\{|\$\(|\{\{|\{[a-z_.]*\}|"
    r"%\(|%[sd]|redacted|abcdef|12345|00000|11111|foobar|test|fake|secret|passw|token|lorem"
)
_IDENTIFIER = re.compile(r"[A-Za-z_$./:-]+[0-9]{0,3}")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://.*|[./~].*", re.DOTALL)
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def is_live_value(value: str) -> bool:
    """Whether a value given to something called a password looks like a live one: no name, word, path or stand-in."""
    if len(value) < 8 or _STAND_IN.search(value) or _IDENTIFIER.fullmatch(value) or _URL.fullmatch(value):
        return False
    if not any(c.isdigit() for c in value) or not any(c.isalpha() for c in value):
        return False
    if value.count(" ") > 0 or _UUID.fullmatch(value):
        return False
    wanted = 2.7 if len(value) < 12 else 3.0 if len(value) < 20 else 3.2
    if _HEX.fullmatch(value):
        return len(value) >= 20 and entropy(value) >= 3.0
    return entropy(value) >= wanted


def _is_live_bare(value: str) -> bool:
    """Without quotes it is easily code: be stricter."""
    return (
        len(value) >= 10
        and is_live_value(value)
        and not re.search(r"[()\[\]{}\\]|::|->|\.\w+\.|^:[a-z]+(?:_[a-z]+\d{0,3})+[?!]?$", value)
    )


_WORDS_FOR_PASSWORDS = re.compile(
    r"(?i)(?:my|your|the|some|bad|db|user|cache)?_?(?:pass(?:word|wd)?|pwd|secret|token|user(?:name)?)|foo|bar|foobar|test|"
    r"[x*.-]+|<.*>|\{.*\}|\$[A-Za-z_]+|%[a-z]|.*(?:\$\{|\$\(|\{\{|%\(|\.\.\.).*"
)


def _is_password(value: str) -> bool:
    return _WORDS_FOR_PASSWORDS.fullmatch(value) is None


def _is_url_password(value: str) -> bool:
    return _is_password(re.sub(r"%[0-9A-Fa-f]{2}", "-", value))


def _is_card(value: str) -> bool:
    digits = re.sub(r"[ -]", "", value)
    return len(set(digits)) > 3 and not digits.endswith("000000") and is_luhn(digits)  # a time in nanoseconds


def _is_basic(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _holds_private_key(value: str) -> bool:
    text = "".join(value.split())
    try:
        return b"PRIVATE KEY" in base64.b64decode(text[: min(len(text), 120) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_jwt(value: str) -> bool:
    head = value.partition(".")[0]
    try:
        return b'"' in base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        return False


def _p(
    kind: str,
    keywords: str,
    regex: str,
    accept: Callable[[str], bool] = _always,
    *,
    back: int = 0,
    start: bool = True,
    any_case: bool = False,
) -> Pattern:
    before = _START if start else ""
    return Pattern(kind, tuple(keywords.split()), before + regex, accept, back, any_case)


_START = r"(?<![A-Za-z0-9_])"
_END = r"(?![A-Za-z0-9_])"
_W = "[A-Za-z0-9_-]"

_CLOUD = (
    _p("aws_key", "AKIA ASIA ABIA ACCA", rf"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{{16}}{_END}"),
    _p("gcp_key", "AIza", rf"AIza{_W}{{35}}(?!{_W})"),
    _p("gcp_key", "GOCSPX-", rf"GOCSPX-{_W}{{28}}"),
    _p("gcp_token", "ya29.", rf"ya29\.{_W}{{20,}}"),
    _p(
        "azure_key",
        "AccountKey= SharedAccessKey=",
        r"(?:AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9+/]{40,88}={0,2})",
    ),
    _p("azure_token", "&sig= ?sig=", r"[&?]sig=(?P<s>[A-Za-z0-9%+/]{40,90}(?:%3[Dd]|=))", start=False),
    _p(
        "azure_key",
        "0Q~ 1Q~ 2Q~ 3Q~ 4Q~ 5Q~ 6Q~ 7Q~ 8Q~ 9Q~",
        r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}",
        _random(3.5),
        back=3,
        start=False,
    ),
    _p("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", rf"do[por]_v1_[0-9a-f]{{64}}{_END}"),
    _p("alibaba_key", "LTAI", rf"LTAI[A-Za-z0-9]{{16,24}}{_END}", _random(3.2)),
    _p("tencent_key", "AKID", rf"AKID[A-Za-z0-9]{{32}}{_END}", _random(3.5)),
    _p("databricks_token", "dapi", rf"dapi[0-9a-f]{{32}}(?:-\d)?{_END}", _random(3.0)),
    _p("vault_token", "hvs. hvb. hvr.", rf"hv[sbr]\.{_W}{{24,}}", _random(3.3)),
    _p("terraform_token", ".atlasv1.", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_W}{{60,70}}", back=14),
    _p("pulumi_token", "pul-", rf"pul-[0-9a-f]{{40}}{_END}"),
    _p("heroku_key", "HRKU-", rf"HRKU-{_W}{{36,}}"),
    _p("planetscale_key", "pscale_", rf"pscale_(?:tkn|pw|oauth)_{_W}{{32,}}"),
    _p("tailscale_key", "tskey-", r"tskey-[a-z]{2,10}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}"),
    _p("supabase_key", "sbp_ sb_secret_", rf"(?:sbp_[0-9a-f]{{40}}|sb_secret_{_W}{{20,}})"),
    _p("cloudflare_key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    _p("dynatrace_token", "dt0c01. dt0s01.", r"dt0[cs]01\.[A-Z2-7]{24}\.[A-Z2-7]{64}"),
)
_FORGES = (
    _p("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_[A-Za-z0-9]{{36,255}}{_END}"),
    _p("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{60,255}"),
    _p(
        "gitlab_token",
        "glpat- gldt- glrt- glptt- glft- glsoat- glagent- glimt- glcbt- glffct- glrtr-",
        rf"gl(?:pat|dt|rt|ptt|ft|soat|agent|imt|cbt|ffct|rtr)-{_W}{{20,}}",
        _random(3.0),
    ),
    _p("gitlab_token", "GR1348941", rf"GR1348941{_W}{{20}}"),
    _p("bitbucket_token", "ATBB", rf"ATBB[A-Za-z0-9]{{24,40}}{_END}", _random(3.3)),
    _p("atlassian_token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_=-]{60,}"),
    _p("npm_token", "npm_", rf"npm_[A-Za-z0-9]{{36}}{_END}", _random(3.5)),
    _p("pypi_token", "pypi-AgEI pypi-AgEN", rf"pypi-AgE{_W}{{50,}}"),
    _p("rubygems_key", "rubygems_", rf"rubygems_[0-9a-f]{{48}}{_END}"),
    _p("nuget_key", "oy2", rf"oy2[a-z0-9]{{43}}{_END}", _random(3.5)),
    _p("docker_token", "dckr_pat_ dckr_oat_", rf"dckr_[po]at_{_W}{{27,}}"),
    _p("artifactory_key", "AKCp", rf"AKCp[A-Za-z0-9]{{60,73}}{_END}"),
    _p("sonar_token", "squ_ sqp_ sqa_", rf"sq[upa]_[0-9a-f]{{40}}{_END}"),
)
_MODELS = (
    _p("anthropic_key", "sk-ant-", rf"sk-ant-{_W}{{20,}}", _random(3.0)),
    _p("openai_key", "sk-", rf"(?<!-)sk-{_W}{{0,160}}T3BlbkFJ{_W}{{16,160}}"),
    _p("model_key", "sk-", rf"(?<!-)sk-(?:[a-z0-9]{{2,12}}-){{0,3}}[A-Za-z0-9_-]{{20,200}}{_END}", _random(3.8)),
    _p("huggingface_token", "hf_", rf"hf_[A-Za-z0-9]{{34,40}}{_END}", _varied(3.8)),
    _p("huggingface_token", "api_org_", rf"api_org_[A-Za-z]{{34}}{_END}", _varied(3.8)),
    _p("model_key", "gsk_", rf"gsk_[A-Za-z0-9]{{48,60}}{_END}", _random(3.8)),
    _p("model_key", "xai-", rf"xai-[A-Za-z0-9]{{70,90}}{_END}", _random(3.8)),
    _p("model_key", "pplx-", rf"pplx-[A-Za-z0-9]{{40,60}}{_END}", _random(3.5)),
    _p("model_key", "nvapi-", rf"nvapi-{_W}{{60,75}}", _random(3.8)),
    _p("model_key", "csk-", rf"csk-[a-z0-9]{{40,60}}{_END}", _random(3.5)),
    _p("model_key", "tgp_v1_", rf"tgp_v1_{_W}{{40,}}", _random(3.5)),
    _p("model_key", "r8_", rf"r8_[A-Za-z0-9]{{37}}{_END}", _random(3.8)),
    _p("model_key", "fw_", rf"fw_[A-Za-z0-9]{{22,30}}{_END}", _random(3.8)),
    _p("langsmith_key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
)
_SERVICES = (
    _p(
        "slack_token",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs-",
        r"xox[abcdeoprs][.-][A-Za-z0-9.%-]{10,}",
        _random(2.0),
    ),
    _p("slack_token", "xapp-", r"xapp-\d-[A-Z0-9]+-\d+-[A-Za-z0-9]+"),
    _p(
        "slack_webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Za-z0-9+/]{30,})",
    ),
    _p("discord_webhook", "/api/webhooks/", rf"/api/webhooks/\d{{15,22}}/(?P<s>{_W}{{50,}})", start=False),
    _p("telegram_token", ":AA", rf"(?<!\d)\d{{10}}:AA{_W}{{33}}(?!{_W})", back=10, start=False),
    _p("telegram_token", ":AA", rf"(?<!\d)\d{{9}}:AA{_W}{{33}}(?!{_W})", back=9, start=False),
    _p(
        "stripe_key",
        "sk_live_ rk_live_ sk_test_ rk_test_ sk_prod_ rk_prod_",
        rf"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{{10,250}}{_END}",
    ),
    _p("stripe_key", "whsec_", r"whsec_[A-Za-z0-9+/]{24,}", _random(3.3)),
    _p("square_token", "sq0atp- sq0csp- sq0idp-", rf"sq0(?:atp|csp|idp)-{_W}{{22,}}"),
    _p("paypal_token", "access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    _p("shopify_token", "shpat_ shpca_ shppa_ shpss_", rf"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}{_END}"),
    _p("sendgrid_key", "SG.", rf"SG\.{_W}{{16,32}}\.{_W}{{16,64}}", _random(3.5)),
    _p("mailgun_key", "key-", rf"key-[0-9a-f]{{32}}{_END}", _random(3.0)),
    _p("sentry_token", "sntrys_ sntryu_", r"sntry(?:s_eyJ[A-Za-z0-9+/=_-]{60,}|u_[0-9a-f]{64})"),
    _p(
        "grafana_token",
        "glc_ glsa_",
        r"gl(?:c_[A-Za-z0-9+/]{32,}={0,3}|sa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8})",
        _random(3.5),
    ),
    _p("newrelic_key", "NRAK- NRII- NRRA-", rf"NR(?:AK|II|RA)-{_W}{{27,42}}"),
    _p("postman_key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _p("linear_key", "lin_api_ lin_oauth_", rf"lin_(?:api|oauth)_[A-Za-z0-9]{{40,64}}{_END}"),
    _p(
        "notion_token",
        "ntn_ secret_",
        rf"(?:ntn_\d{{10,12}}[A-Za-z0-9]{{32,36}}|secret_[A-Za-z0-9]{{43}}){_END}",
        _random(3.8),
    ),
    _p("figma_token", "figd_", rf"figd_{_W}{{38,}}"),
    _p(
        "doppler_token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}",
    ),
    _p("onepassword_token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=_-]{200,}"),
    _p("facebook_token", "EAA", r"(?<![/+])EAA[A-Za-z0-9]{90,250}(?![A-Za-z0-9_/+=])", _random(3.8)),
    _p("netlify_token", "nfp_", rf"nfp_[A-Za-z0-9]{{36,40}}{_END}", _random(3.5)),
    _p("age_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
)
_KEY_FILLER = r"(?:[\s\"',+|>#*]|\\[nr])"
_GENERAL = (
    _p(
        "private_key",
        "-----BEGIN",
        r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?P<s>(?=[^-]{0,400}?[A-Za-z0-9+/=]{16})[^-]{16,20000}(?:-(?!----)[^-]{0,20000}){0,9})(?=-----END)",
        start=False,
    ),
    _p(
        "private_key",
        "-----BEGIN",
        rf"-----BEGIN[ A-Z0-9]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?P<s>{_KEY_FILLER}{{0,40}}+(?:[A-Za-z0-9+/=]{{40,80}}+{_KEY_FILLER}{{0,40}}+)++)",
        start=False,
    ),
    _p("private_key", "Private-Lines:", r"Private-Lines: \d+\r?\n(?P<s>(?:[A-Za-z0-9+/=]{4,76}+(?:\r?\n|$)){1,200})"),
    _p(
        "private_key",
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{46,20000}+={0,2}(?:\r?\n[ \t]{0,16}[A-Za-z0-9+/]{60,76}+={0,2}){0,300}"
        r"(?:\r?\n[ \t]{0,16}[A-Za-z0-9+/]{1,75}={1,2}(?=\s|$))?",
        _holds_private_key,
    ),
    _p("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]{10,})?", _is_jwt),
    _p(
        "url_password",
        "://",
        r"://[^\s/@:'\"`<>\\?#()\[\]{}|,]{0,100}+:(?P<s>[^\s/@'\"`<>\\]{1,200}+)@(?=[A-Za-z0-9\[_])",
        _is_url_password,
        start=False,
    ),
    _p(
        "url_password",
        "%3a%2f%2f",
        r"%3[Aa]%2[Ff]%2[Ff][A-Za-z0-9._-]{0,100}+%3[Aa](?P<s>[A-Za-z0-9._~%-]{1,200}?)%40",
        _is_url_password,
        start=False,
        any_case=True,
    ),
    _p(
        "authorization",
        "bearer",
        r"(?i:bearer)(?:\s{1,3}|%20)(?P<s>[A-Za-z0-9._~+/-]{16,4000}+={0,2})(?![A-Za-z0-9(])",
        _random(3.2),
        any_case=True,
    ),
    _p(
        "authorization",
        "basic",
        r"(?i:basic)(?:\s{1,3}|%20)(?P<s>[A-Za-z0-9+/]{8,400}+={0,2})(?![A-Za-z0-9(])",
        _is_basic,
        any_case=True,
    ),
    _p(
        "authorization",
        "authorization",
        r"(?i:authorization)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:(?i:token|apikey|key|digest)\s{1,3})?"
        r"(?P<s>[A-Za-z0-9._~+/-]{16,4000}+={0,2})(?![A-Za-z0-9(])",
        _random(3.2),
        start=False,
        any_case=True,
    ),
)

_ASSIGNED = (
    *("password", "passwd", "passphrase", "passcode", "pwd", "secret", "token"),
    *("api_key", "apikey", "api-key", "access_key", "accesskey", "access-key", "private_key", "privatekey"),
    *("auth_key", "authkey", "account_key", "encryption_key", "signing_key", "master_key"),
)
_TO_VALUE = (
    r"[A-Za-z0-9_.-]{3,60}+[\"'`\]]{0,2}+[ \t]{0,8}+"
    r"(?::[ \t]{0,2}+[A-Za-z_][A-Za-z_.|\[\] ]{0,30}(?==))?(?:={1,3}|=>|:=?|%3[Dd]|>|,)>?[ \t]{0,8}+"
)
_ASSIGNMENTS = (
    Pattern(
        "assigned_secret",
        _ASSIGNED,
        _TO_VALUE + r"[rbufRBUF]{0,2}(?P<q>[\"'`])(?P<s>[^\"'`\r\n]{8,300}+)(?P=q)",
        is_live_value,
        any_case=True,
    ),
    Pattern(
        "assigned_secret",
        _ASSIGNED,
        _TO_VALUE + r"(?P<s>[^\s\"'`,;&<>\[\]()]{10,300}+)(?=[\s,;&<\"']|$)",
        _is_live_bare,
        any_case=True,
    ),
)

CARD = Pattern(
    "card_number",
    (),
    r"[2-6](?<![0-9A-Za-z_.+/=%#-].)(?:(?:(?<=4)[0-9]{3}|(?<=5)[1-5][0-9]{2}|(?<=2)[2-7][0-9]{2}|(?<=6)(?:011|5[0-9]{2}))"
    r"([ -]?)[0-9]{4}\1[0-9]{4}\1[0-9]{4}|(?<=3)[47][0-9]{2}([ -]?)[0-9]{6}\2[0-9]{5})(?![0-9A-Za-z_+/=%-]|\.[0-9])",
    _is_card,
)
PATTERNS: tuple[Pattern, ...] = (*_CLOUD, *_FORGES, *_MODELS, *_SERVICES, *_GENERAL, *_ASSIGNMENTS)
