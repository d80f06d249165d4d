"""The web roof: raw ASGI under /v1, pages elsewhere; composes, sets HTTP codes."""
