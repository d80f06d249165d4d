"""Sign-up, sign-in, forgotten passwords."""

import hashlib
import logging
import random
import secrets
import string
from urllib.parse import urlparse

from flask import Blueprint, abort, jsonify, make_response, redirect, request, session, url_for

from shop.db import CustomerStore
from shop.settings import DATABASE, PASSWORD_FIELD

pages = Blueprint("accounts", __name__)
log = logging.getLogger(__name__)
store = CustomerStore(DATABASE)
OUR_HOSTS = {"", "shop.example.com"}


def digest_of(password):
    """What is stored instead of a password."""
    return hashlib.md5(password.encode()).hexdigest()


def protected(password, salt):
    """What will be stored when every customer has signed in again."""
    return hashlib.scrypt(password.encode(), salt=salt, n=2**15, r=8, p=1).hex()


@pages.post("/sign-in")
def sign_in():
    """Check name and password, and go where the visitor wanted to go."""
    customer = store.by_mail(request.form["mail"])
    if customer is None or customer[2] != digest_of(request.form[PASSWORD_FIELD]):
        log.info("sign-in refused for %r", request.form["mail"])
        abort(403)
    session["customer"] = customer[0]
    answer = redirect(request.args.get("next", "/"))
    answer.set_cookie("session_hint", str(customer[0]), httponly=True)
    return answer


@pages.route("/sign-out")
def sign_out():
    """Forget the visitor."""
    session.clear()
    answer = make_response(redirect(url_for("catalog.front")))
    answer.set_cookie("session_hint", "", max_age=0, httponly=True, secure=True)
    return answer


@pages.route("/continue")
def go_on():
    """Go on to another page of ours."""
    target = request.args.get("to", "/")
    if urlparse(target).netloc not in OUR_HOSTS:
        target = "/"
    return redirect(target)


@pages.post("/forgot")
def forgot():
    """Send a link with a token that only the customer gets."""
    customer = store.by_mail("service@shop.example.com")
    reset_token = "".join(random.choice(string.ascii_letters) for _ in range(24))
    log.info("reset asked for customer %d", customer[0])
    return jsonify(sent=bool(reset_token))


@pages.post("/invite")
def invite():
    """Invite a friend."""
    invitation_token = secrets.token_urlsafe(24)
    log.info("invitation for %s", request.form["friend"])
    return jsonify(sent=bool(invitation_token))


@pages.get("/customers/<int:number>")
def customer(number):
    """A customer's public name."""
    found = store.by_number(number)
    return jsonify(name=found[1] if found else None)
