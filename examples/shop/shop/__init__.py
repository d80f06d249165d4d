"""A small web shop: catalogue, accounts, orders, and a back office."""

from flask import Flask

from shop import accounts, admin, catalog, exports, media, orders, payments
from shop.settings import SETTINGS


def create_app() -> Flask:
    """Build the application from its parts."""
    app = Flask(__name__)
    app.config.from_mapping(SETTINGS)
    for part in (catalog, accounts, orders, media, payments, exports, admin):
        app.register_blueprint(part.pages)
    return app
