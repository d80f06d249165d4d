"""Where untrusted data decides whom the server talks to."""

from __future__ import annotations

from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.agents.audit.sinks.table import Table, first_member, joined, rows, sink

_SSRF = ("server-side-request-forgery", "ssrf")

_VERBS = ("get", "post", "put", "patch", "delete", "head", "options")
_LIBRARIES = ("requests", "httpx", "niquests", "grequests", "treq", "curl_cffi.requests", "requests.api")
_CLIENTS = (
    *(
        "requests.Session()",
        "requests.session()",
        "requests.sessions.Session()",
        "httpx.Client()",
        "httpx.AsyncClient()",
    ),
    *(
        "aiohttp.ClientSession()",
        "requests_html.HTMLSession()",
        "cloudscraper.create_scraper()",
        "aiohttp.client.ClientSession()",
    ),
    *(
        "starlette.testclient.TestClient()",
        "curl_cffi.requests.Session()",
        "requests_futures.sessions.FuturesSession()",
    ),
)
_FIRST = (
    "urllib.request.urlopen urllib.request.urlretrieve urllib.request.Request urllib2.urlopen urllib.urlopen "
    "urllib2.Request urllib.request.build_opener().open urllib.request.OpenerDirector().open "
    "urllib.request.URLopener().open http.client.HTTPConnection http.client.HTTPSConnection httplib.HTTPConnection "
    "wget.download websockets.connect websockets.client.connect websockets.sync.client.connect "
    "websocket.create_connection websocket.WebSocketApp tornado.httpclient.AsyncHTTPClient().fetch "
    "tornado.httpclient.HTTPClient().fetch tornado.httpclient.HTTPRequest tornado.websocket.websocket_connect "
    "ftplib.FTP ftplib.FTP_TLS smtplib.SMTP smtplib.SMTP_SSL telnetlib.Telnet imaplib.IMAP4 imaplib.IMAP4_SSL "
    "poplib.POP3 xmlrpc.client.ServerProxy asyncio.open_connection feedparser.parse pdfkit.from_url imgkit.from_url "
    "urllib3.HTTPConnectionPool urllib3.HTTPSConnectionPool urllib3.connection_from_url paramiko.Transport "
    "paramiko.SSHClient().connect ldap.initialize suds.client.Client zeep.Client aiohttp.ClientSession().ws_connect "
    "selenium.webdriver.Chrome().get selenium.webdriver.Firefox().get httplib2.Http().request"
)
_SECOND = (
    "requests.request requests.Request requests.api.request httpx.request httpx.stream httpx.Request aiohttp.request "
    "urllib3.request urllib3.PoolManager().request urllib3.PoolManager().urlopen "
    "urllib3.PoolManager().request_encode_url urllib3.ProxyManager().request urllib3.HTTPConnectionPool().request "
    "niquests.request"
)
_ADDRESSES = "socket.create_connection socket.socket().connect socket.socket().connect_ex socket.socket().sendto"


def _is_url_option(call: Invocation) -> bool:
    return call.argument(0).name.endswith(".URL")


def _address(call: Invocation) -> Value:
    """The host of `(host, port)`; `sendto` has it last."""
    at = len(call.args) - 1 if call.name.endswith(".sendto") else 0
    return first_member(call.argument(at, "address"))


def _page_source(call: Invocation) -> Value:
    return call.keywords.get("url", NOTHING)


_ALL_CLIENTS = (*_CLIENTS, *_LIBRARIES)
TABLE: Table = joined(
    (
        rows(
            sink(_SSRF, 0, "url"),
            *(f"{client}.{verb}" for client in _ALL_CLIENTS for verb in _VERBS),
            "aiohttp.ClientSession().ws_connect",
        ),
        rows(sink(_SSRF, 0, "url", "uri", "host", "fullurl", "wsdl", "request"), _FIRST),
        rows(
            sink(_SSRF, 1, "url"),
            _SECOND,
            *(f"{client}.{verb}" for client in _CLIENTS for verb in ("request", "stream", "build_request")),
        ),
        rows(sink(_SSRF, reach=_address), _ADDRESSES),
        rows(sink(_SSRF, 1, when=_is_url_option), "pycurl.Curl().setopt"),
        rows(sink(_SSRF, reach=_page_source), "weasyprint.HTML"),
    )
)
