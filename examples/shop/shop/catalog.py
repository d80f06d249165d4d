"""Pages of the catalogue: list, search, product, manual."""

import hashlib
import os
import random
from html import escape

from flask import Blueprint, Response, abort, jsonify, render_template, request, send_file

from shop.db import SORTABLE, rows
from shop.settings import MANUALS_ROOT

pages = Blueprint("catalog", __name__)


@pages.route("/")
def front():
    """A few products in a new order each time."""
    products = rows("SELECT id, name, price FROM product WHERE stock > 0")
    random.shuffle(products)
    return render_template("front.html", products=products[:6])


@pages.route("/products")
def products():
    """Products in the order that the visitor wants."""
    order = request.args.get("order", "name")
    if order not in SORTABLE:
        abort(400)
    size = int(request.args.get("size", "20"))
    found = rows(f"SELECT id, name, price FROM product ORDER BY {order} LIMIT {size}")
    return jsonify(found)


@pages.route("/products/by-maker")
def by_maker():
    """Products of one maker."""
    maker = request.args["maker"]
    statement = "SELECT id, name, price FROM product WHERE maker = '" + maker + "'"
    return jsonify(rows(statement))


@pages.route("/search")
def search():
    """What was found, or a word of regret."""
    word = request.args.get("q", "")
    found = rows("SELECT id, name FROM product WHERE name LIKE ?", (f"%{word}%",))
    if not found:
        return f"<p>Nothing found for <b>{word}</b>.</p>"
    return render_template("search.html", word=word, found=found)


@pages.route("/search/hint")
def hint():
    """A line under the search box."""
    word = request.args.get("q", "")
    return f"<small>Did you mean {escape(word.lower())}?</small>"


@pages.route("/products/<int:number>/card")
def card(number):
    """A product as a small card; browsers keep it while it does not change."""
    found = rows(f"SELECT name, price FROM product WHERE id = {number}")
    body = str(found).encode()
    answer = Response(body, mimetype="text/plain")
    answer.set_etag(hashlib.md5(body, usedforsecurity=False).hexdigest())
    return answer


@pages.route("/manuals/view")
def manual():
    """A manual of the maker as text."""
    name = request.args["name"]
    with open(os.path.join(MANUALS_ROOT, name), encoding="utf-8") as file:
        return Response(file.read(), mimetype="text/plain")


@pages.route("/manuals/download")
def download():
    """The same manual as a file."""
    path = os.path.realpath(os.path.join(MANUALS_ROOT, request.args["name"]))
    if os.path.commonpath([MANUALS_ROOT, path]) != MANUALS_ROOT:
        abort(404)
    return send_file(path, as_attachment=True)
