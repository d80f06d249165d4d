"""What the shop is told from outside, and what it assumes where nothing is said."""

import os

DATABASE = os.environ.get("SHOP_DATABASE", "shop.db")
MEDIA_ROOT = os.environ.get("SHOP_MEDIA", "/srv/shop/media")
MANUALS_ROOT = os.environ.get("SHOP_MANUALS", "/srv/shop/manuals")
COURIER_URL = "https://courier.example.com/v2"
COURIER_TOKEN = os.environ.get("COURIER_TOKEN", "change-me")
PAYMENT_API_KEY = "pk7Qv2ZxW9mTf4Lr8BnYc3Hd"
PASSWORD_FIELD = "password"
TOKEN_HEADER = "X-Shop-Token"

SETTINGS = {
    "SECRET_KEY": os.environ.get("SHOP_SECRET_KEY", "<set me>"),
    "SESSION_COOKIE_HTTPONLY": True,
    "SESSION_COOKIE_SECURE": True,
    "MAX_CONTENT_LENGTH": 8 * 1024 * 1024,
}
