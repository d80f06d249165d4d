"""The shop's one database, opened once a request."""

import sqlite3

from flask import g

from shop.settings import DATABASE

REPORT_TABLES = {"day": "sales_by_day", "week": "sales_by_week", "month": "sales_by_month"}
SORTABLE = ("name", "price", "stock")


def connection():
    """The connection of this request."""
    if "db" not in g:
        g.db = sqlite3.connect(DATABASE)
        g.db.row_factory = sqlite3.Row
    return g.db


def rows(statement, values=()):
    """All rows of a statement as dictionaries."""
    return [dict(row) for row in connection().execute(statement, values).fetchall()]


class CustomerStore:
    """Customers by name, mail address and number."""

    def __init__(self, path):
        self.cursor = sqlite3.connect(path, check_same_thread=False).cursor()

    def by_mail(self, mail):
        """The customer with this address."""
        self.cursor.execute(f"SELECT id, name, hash FROM customer WHERE mail = '{mail}'")
        return self.cursor.fetchone()

    def by_number(self, number):
        """The customer with this number."""
        self.cursor.execute("SELECT id, name, hash FROM customer WHERE id = ?", (number,))
        return self.cursor.fetchone()

    def set_hash(self, number, digest):
        """Store what `accounts` made of a password."""
        self.cursor.execute("UPDATE customer SET hash = ? WHERE id = ?", (digest, number))
        self.cursor.connection.commit()
