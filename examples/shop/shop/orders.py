"""Baskets and orders."""

import base64
import json
import pickle
import xml.etree.ElementTree as ElementTree

import yaml
from flask import Blueprint, jsonify, make_response, request

from shop.db import connection, rows

pages = Blueprint("orders", __name__)
STATES = {"open": 0, "paid": 1, "sent": 2}


@pages.get("/basket")
def basket():
    """The basket that the browser keeps for us."""
    kept = request.cookies.get("basket", "")
    items = pickle.loads(base64.b64decode(kept)) if kept else []
    return jsonify(items=len(items))


@pages.post("/basket")
def keep_basket():
    """Give the browser its basket to keep."""
    items = json.loads(request.get_data())
    answer = make_response(jsonify(items=len(items)))
    answer.set_cookie("basket", base64.b64encode(json.dumps(items).encode()).decode(), secure=True)
    return answer


@pages.get("/orders")
def orders():
    """Orders in one state."""
    state = STATES[request.args.get("state", "open")]
    return jsonify(rows("SELECT id, total FROM purchase WHERE state = %d" % state))


@pages.post("/orders/import")
def import_order():
    """An order that a dealer sends as YAML or XML."""
    if request.content_type == "application/yaml":
        order = yaml.load(request.get_data(), Loader=yaml.Loader)
        return jsonify(lines=len(order["lines"]))
    document = ElementTree.fromstring(request.get_data())
    return jsonify(lines=len(document.findall("line")))


@pages.post("/orders/defaults")
def defaults():
    """How a dealer wants orders to be sent."""
    wanted = yaml.safe_load(request.get_data())
    connection().execute("UPDATE dealer SET wanted = ? WHERE id = ?", (json.dumps(wanted), int(request.args["dealer"])))
    return jsonify(ok=True)
