"""Talks to the payment service and to the courier."""

import hashlib
import hmac

import jwt
import requests
from flask import Blueprint, abort, current_app, jsonify, request

from shop.settings import COURIER_TOKEN, COURIER_URL, PAYMENT_API_KEY, TOKEN_HEADER

pages = Blueprint("payments", __name__)


@pages.post("/payments/notify")
def notify():
    """The payment service tells that money has come."""
    expected = hmac.new(PAYMENT_API_KEY.encode(), request.get_data(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, request.headers.get(TOKEN_HEADER, "")):
        abort(403)
    return jsonify(ok=True)


@pages.get("/payments/receipt")
def receipt():
    """A receipt, for whoever holds its link."""
    claims = jwt.decode(request.args["link"], options={"verify_signature": False})
    return jsonify(order=claims["order"])


@pages.get("/payments/invoice")
def invoice():
    """An invoice, for whoever holds its link."""
    claims = jwt.decode(request.args["link"], current_app.config["SECRET_KEY"], algorithms=["HS256"])
    return jsonify(order=claims["order"])


@pages.get("/delivery/<int:order>")
def delivery(order):
    """Where the parcel is."""
    answer = requests.get(f"{COURIER_URL}/parcels/{order}", headers={"Authorization": COURIER_TOKEN}, timeout=5)
    return jsonify(answer.json())


@pages.get("/delivery/label")
def label():
    """The label that the courier prints for us."""
    answer = requests.get(f"{COURIER_URL}/labels", params={"order": request.args["order"]}, verify=False, timeout=5)
    return jsonify(size=len(answer.content))


@pages.post("/delivery/callback")
def callback():
    """Ask the dealer's own system to take the parcel back."""
    answer = requests.post(request.form["callback"], json={"order": request.form["order"]}, timeout=5)
    return jsonify(ok=answer.ok)
