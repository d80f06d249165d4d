"""Files and letters that the back office takes out."""

import csv
import io
import tempfile

from flask import Blueprint, Response, jsonify, render_template_string, request

from shop.db import REPORT_TABLES, rows

pages = Blueprint("exports", __name__)
LETTER = "<p>Dear {{ name }}, your order {{ order }} is on its way.</p>"


@pages.get("/exports/sales")
def sales():
    """Sales of one branch by day, week or month."""
    table = REPORT_TABLES[request.args.get("period", "day")]
    found = rows(f"SELECT amount FROM {table} WHERE branch = ?", (request.args["branch"],))
    return jsonify(found)


@pages.get("/exports/customers")
def customers():
    """Customers as a table."""
    path = tempfile.mktemp(suffix=".csv")
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows((row["id"], row["name"]) for row in rows("SELECT id, name FROM customer"))
    return jsonify(path=path)


@pages.get("/exports/stock")
def stock():
    """What is in stock, as a table."""
    text = io.StringIO()
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        csv.writer(file).writerow(["id", "stock"])
    csv.writer(text).writerows((row["id"], row["stock"]) for row in rows("SELECT id, stock FROM product"))
    return Response(text.getvalue(), mimetype="text/csv")


@pages.get("/letters/shipped")
def shipped():
    """The letter that goes out with a parcel."""
    return render_template_string(LETTER, name=request.args["name"], order=request.args["order"])


@pages.post("/letters/preview")
def preview():
    """A letter as the back office writes it."""
    text = request.form["text"]
    return render_template_string("<article>" + text + "</article>", name="A. Customer")
