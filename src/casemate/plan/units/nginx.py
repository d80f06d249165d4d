"""An nginx site before the gateway. Pure; `nginx -t` is run on it in the tests where nginx is installed.

The gateway serves loopback names only and refuses foreign origins (`web/guard.py`). nginx keeps both promises: it
answers one host name, and turns only that name's own origin into the gateway's; every other goes on as it came, and is
refused there.
"""

from __future__ import annotations

from casemate.plan.units.deployment import Deployment, File

NAME = "casemate.nginx.conf"
LONGEST_S = 3600
"""Above the longest wait in a queue and the longest prompt."""


def site(deployment: Deployment) -> File:
    """The site's file, for `/etc/nginx/sites-available` or `conf.d`; it never names the engine's port."""
    places = deployment.places
    values = {
        "HOST": places.host_name,
        "TLS": places.tls,
        "NETWORK": places.network,
        "PORT": str(deployment.gateway_port),
        "SECONDS": str(LONGEST_S),
    }
    text = _SITE
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return File(NAME, text)


_SITE = """\
# Casemate behind TLS. Change three things: the host name, the certificate's folder, and who may come in.
# It passes requests to the gateway alone, never to the engine.

# Browsers send the origin of the page they are on. Ours becomes the gateway's own; all others are refused there.
map $http_origin $casemate_origin {
    default $http_origin;
    "https://@HOST@" "http://127.0.0.1:@PORT@";
}

upstream casemate_gateway {
    server 127.0.0.1:@PORT@;
    keepalive 32;
}

server {
    listen 80;
    server_name @HOST@;
    return 308 https://@HOST@$request_uri;
}

# Requests for any other name get no certificate and no answer: a foreign name cannot be pointed at this host.
server {
    listen 443 ssl default_server;
    server_name _;
    ssl_reject_handshake on;
}

server {
    listen 443 ssl;
    server_name @HOST@;

    ssl_certificate @TLS@/fullchain.pem;
    ssl_certificate_key @TLS@/privkey.pem;
    ssl_protocols TLSv1.2 TLSv1.3;
    server_tokens off;

    # Who may come in: your own network here. There is no other check of who asks.
    allow @NETWORK@;
    deny all;

    # A little more than the gateway takes (10 MiB), so that its own answer says what was too large.
    client_max_body_size 11m;

    location / {
        proxy_pass http://casemate_gateway;

        # Tokens are passed on when they come: no buffer, no cache, no compression, which waits for more to compress.
        proxy_buffering off;
        proxy_cache off;
        gzip off;

        # Streams need HTTP/1.1 and connections that stay open.
        proxy_http_version 1.1;
        proxy_set_header Connection "";

        # The gateway answers loopback names only.
        proxy_set_header Host 127.0.0.1:@PORT@;
        proxy_set_header Origin $casemate_origin;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto https;

        # A request may wait in the queue and read a long prompt before its first token.
        proxy_connect_timeout 5s;
        proxy_read_timeout @SECONDS@s;
        proxy_send_timeout @SECONDS@s;
        send_timeout @SECONDS@s;

        # A client that leaves ends its request at the engine; a request is never sent twice.
        proxy_ignore_client_abort off;
        proxy_next_upstream off;
    }
}
"""
