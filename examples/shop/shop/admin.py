"""The back office."""

import ast
import operator
import re

from flask import Blueprint, abort, jsonify, request

from shop.db import connection, rows

pages = Blueprint("admin", __name__)
OPERATIONS = {"sum": sum, "max": max, "min": min, "count": len}
COLUMN = re.compile(r"[a-z_]{1,30}")


def _column(name):
    if not COLUMN.fullmatch(name):
        abort(400)
    return name


@pages.get("/admin/discount")
def discount():
    """Try a formula for discounts."""
    formula = request.args["formula"]
    prices = [row["price"] for row in rows("SELECT price FROM product")]
    return jsonify(prices=[eval(formula, {"price": price}) for price in prices])


@pages.get("/admin/figures")
def figures():
    """One figure over a list of numbers."""
    numbers = ast.literal_eval(request.args["numbers"])
    return jsonify(figure=OPERATIONS[request.args["operation"]](numbers))


@pages.get("/admin/column")
def column():
    """All values of one column."""
    name = _column(request.args["name"])
    return jsonify(rows(f"SELECT {name} FROM product"))


@pages.post("/admin/cleanup")
def cleanup():
    """Forget what was left in baskets before a day."""
    day = request.form["day"]
    connection().execute("DELETE FROM basket WHERE day < '%s'" % day)
    return jsonify(ok=True)


@pages.get("/admin/compare")
def compare():
    """Which of two products has more in stock."""
    pair = [rows("SELECT stock FROM product WHERE id = ?", (request.args[key],))[0] for key in ("first", "second")]
    return jsonify(first_has_more=operator.gt(pair[0]["stock"], pair[1]["stock"]))
