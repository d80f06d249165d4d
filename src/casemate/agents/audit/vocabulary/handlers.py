"""Which functions frameworks call, and with whose data: by decorator, class or registration. Facts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ROUTE_VERBS = frozenset(
    {
        *("route", "get", "post", "put", "patch", "delete", "options", "head", "api_route", "websocket", "view"),
        *("get_api", "post_api", "add_route", "errorhandler", "websocket_route", "view_config"),
    }
)
CLEAN_CONVERTERS = frozenset({"int", "float", "uuid", "any", "bool"})
CLEAN_TYPES = frozenset(
    {
        *("int", "float", "bool", "complex", "uuid.UUID", "datetime.date", "datetime.datetime", "datetime.time"),
        *("decimal.Decimal", "UUID", "date", "datetime", "PositiveInt", "NonNegativeInt", "None", "Decimal"),
        *("pydantic.PositiveInt", "pydantic.NonNegativeInt", "pydantic.UUID4", "ipaddress.IPv4Address", "timedelta"),
        *("pydantic.conint", "pydantic.confloat", "pydantic.IPvAnyAddress", "datetime.timedelta", "bson.ObjectId"),
        *("pydantic.PositiveFloat", "pydantic.StrictInt", "pydantic.StrictBool", "pydantic.UUID1", "pydantic.UUID5"),
        *(
            "conint",
            "confloat",
            "uuid.UUID4",
            "Literal",
            "typing.Literal",
            "typing_extensions.Literal",
            "pydantic.condate",
        ),
        *(
            "django.forms.IntegerField",
            "django.forms.FloatField",
            "django.forms.DecimalField",
            "django.forms.DateField",
        ),
        *(
            "django.forms.BooleanField",
            "django.forms.ChoiceField",
            "django.forms.TypedChoiceField",
            "django.forms.UUIDField",
        ),
        *("django.forms.MultipleChoiceField", "django.forms.ModelChoiceField", "django.forms.DateTimeField"),
        *(
            "django.forms.TimeField",
            "django.forms.NullBooleanField",
            "django.forms.SlugField",
            "django.forms.DurationField",
        ),
        *("rest_framework.serializers.IntegerField", "rest_framework.serializers.FloatField"),
        *("rest_framework.serializers.BooleanField", "rest_framework.serializers.ChoiceField"),
        *("rest_framework.serializers.UUIDField", "rest_framework.serializers.DateField"),
        *("rest_framework.serializers.DateTimeField", "rest_framework.serializers.DecimalField"),
        *("rest_framework.serializers.PrimaryKeyRelatedField", "rest_framework.serializers.SlugField"),
        *(
            "wtforms.IntegerField",
            "wtforms.SelectField",
            "wtforms.BooleanField",
            "wtforms.DateField",
            "wtforms.FloatField",
        ),
        *("wtforms.RadioField", "wtforms.DecimalField", "marshmallow.fields.Integer", "marshmallow.fields.Int"),
        *(
            "marshmallow.fields.Boolean",
            "marshmallow.fields.Float",
            "marshmallow.fields.UUID",
            "marshmallow.fields.Date",
        ),
    }
)
"""Types and fields whose values are numbers, dates, identifiers or one of a fixed set."""
WRAPPERS = frozenset(
    {"Optional", "Union", "Annotated", "List", "list", "Set", "set", "Sequence", "tuple", "Tuple", "frozenset"}
)
"""Generic types that hold what stands in their brackets."""
OPEN_TYPES = frozenset({"dict", "list", "Any", "Dict", "List", "object", "Mapping", "JSON"})
"""Types under which a client may send a document where a text is expected."""
INJECTED = frozenset({"Security", "Inject", "Provide", "BackgroundTasks", "Response", "AsyncSession", "Session"})
"""Parameters of a handler that the framework fills itself."""
FIRM_NAMES = frozenset(
    {"self", "cls", "context", "start_response", "info", "ctx", "resp", "response", "root", "interaction"}
)
"""Parameters that frameworks fill with objects of their own."""


@dataclass(frozen=True, slots=True)
class Called:
    """Functions that a library calls where one of `packages` is imported: the `kind` of source, how many to `skip`."""

    packages: tuple[str, ...]
    kind: str = "web"
    skip: int = 0


DECORATED: Mapping[str, Called] = {
    "on": Called(("flask_socketio", "socketio", "discord", "pyrogram", "telethon")),
    "event": Called(("flask_socketio", "socketio", "discord", "nextcord")),
    "tool": Called(("mcp", "fastmcp")),
    "resource": Called(("mcp", "fastmcp")),
    "command": Called(("discord", "nextcord", "disnake"), skip=1),
    "callback": Called(("dash",)),
    "expose": Called(("cherrypy",)),
    "http": Called(("functions_framework",)),
    "cloud_event": Called(("functions_framework",)),
    "field": Called(("strawberry",)),
    "mutation": Called(("strawberry",)),
    "rpc": Called(("nameko",)),
    "message_handler": Called(("telebot", "aiogram")),
    "task": Called(("celery", "huey", "invoke_queue"), "message"),
    "shared_task": Called(("celery",), "message"),
    "actor": Called(("dramatiq",), "message"),
    "agent": Called(("faust",), "message"),
    "dispatcher": Called(("jsonrpcserver",)),
    "method": Called(("jsonrpcserver",)),
    "filter": Called(("django",)),
    "simple_tag": Called(("django",)),
    "template_filter": Called(("flask", "quart")),
    "app_template_filter": Called(("flask", "quart")),
}
"""By the last name of a decorator."""
REGISTERED: Mapping[str, tuple[Called, tuple[int | str, ...]]] = {
    "register_function": (Called(("xmlrpc",)), (0,)),
    "add_url_rule": (Called(("flask", "quart")), (2, "view_func")),
    "Interface": (Called(("gradio",)), (0, "fn")),
    "ChatInterface": (Called(("gradio",)), (0, "fn")),
    "click": (Called(("gradio",)), (0, "fn")),
    "submit": (Called(("gradio",)), (0, "fn")),
    "change": (Called(("gradio",)), (0, "fn")),
    "basic_consume": (Called(("pika",), "message", 3), (1, "on_message_callback")),
    "start_server": (Called(("asyncio",)), (0, "client_connected_cb")),
    "start_unix_server": (Called(("asyncio",)), (0,)),
    "serve": (Called(("websockets",)), (0, "handler")),
    "MessageHandler": (Called(("telegram",)), (1, "callback")),
    "CommandHandler": (Called(("telegram",)), (1, "callback")),
    "Depends": (Called(("fastapi",)), (0, "dependency")),
    "add_route": (Called(("starlette", "sanic", "litestar", "aiohttp", "webob")), (1, "handler")),
    "Route": (Called(("starlette",)), (1, "endpoint")),
    "subscribe": (Called(("google", "paho", "nats"), "message"), (1, "callback", "cb")),
}
"""By the last name of a call that is handed the function, and where it is handed."""
METHODS: Mapping[str, tuple[tuple[str, ...], str, int]] = {
    "flask.views.": (("get", "post", "put", "patch", "delete", "dispatch_request"), "web", 1),
    "flask_restful.": (("get", "post", "put", "patch", "delete"), "web", 1),
    "flask_restx.": (("get", "post", "put", "patch", "delete"), "web", 1),
    "tornado.": (("get", "post", "put", "patch", "delete", "prepare", "on_message", "open"), "web", 1),
    "graphene.": (("resolve_*", "mutate"), "web", 2),
    "channels.": (("receive", "receive_json", "websocket_receive"), "web", 1),
    "asyncio.Protocol": (("data_received",), "web", 1),
    "asyncio.DatagramProtocol": (("datagram_received",), "web", 1),
    "twisted.": (("dataReceived", "lineReceived", "datagramReceived"), "web", 1),
    "django.views.": (("form_valid", "form_invalid"), "web", 1),
    "aiohttp.web.View": (("get", "post", "put", "patch", "delete"), "web", 1),
}
"""By the beginning of a base class: methods that are called, the kind of source, parameters before the client's."""
OUTSIDE_WORDS = frozenset(
    {
        "event",
        "payload",
        "form",
        "webhook",
        "user_input",
        "userinput",
        "untrusted",
        "query_string",
        "raw_request",
        "request_body",
    }
)
"""Names of parameters that say that what they carry came from outside."""
REMOTE_CALLBACKS: Mapping[str, tuple[str, ...]] = {
    "on_message": ("paho",),
}
UNTRUSTED_TYPES: Mapping[str, str] = {
    "telegram.Update": "web",
    "aiogram.types.Message": "web",
    "discord.Message": "web",
    "azure.functions.ServiceBusMessage": "message",
    "azure.functions.QueueMessage": "message",
    "websockets.WebSocketServerProtocol": "web",
    "websockets.server.WebSocketServerProtocol": "web",
    "websockets.ServerConnection": "web",
    "werkzeug.datastructures.FileStorage": "web",
    "fastapi.UploadFile": "web",
    "starlette.datastructures.UploadFile": "web",
}
"""Parameters of these types carry a client's data, whoever calls the function."""
