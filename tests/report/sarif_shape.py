"""The part of SARIF 2.1.0 that we write, as a closed JSON Schema: a property that the standard lacks is an error."""

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {"text": _TEXT, "markdown": _TEXT},
}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_INDEX = {"type": "integer", "minimum": 0}
_POSITION = {"type": "integer", "minimum": 1}
_URI = {"type": "string", "pattern": "^https://"}
_RELATIVE = {
    "type": "string",
    # A relative reference: segments of unreserved characters and escapes, no scheme, no leading slash, no dot segment.
    "pattern": r"^(?!/)(?!.*(^|/)\.{1,2}(/|$))([A-Za-z0-9_.~-]|%[0-9A-F]{2}|/)+$",
}


def _closed(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


def _list(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


_COMPONENT = _closed("name index", name=_TEXT, index=_INDEX)
_TAXON = _closed("id index toolComponent", id={"pattern": r"^CWE-\d+$"}, index=_INDEX, toolComponent=_COMPONENT)
_PLACE = _closed(
    "artifactLocation",
    artifactLocation=_closed("uri uriBaseId", uri=_RELATIVE, uriBaseId={"const": "%SRCROOT%"}),
    region=_closed(
        "startLine startColumn endLine endColumn",
        startLine=_POSITION,
        startColumn=_POSITION,
        endLine=_POSITION,
        endColumn=_POSITION,
        snippet=_MESSAGE,
    ),
)
_LOCATION = _closed("physicalLocation", physicalLocation=_PLACE, message=_MESSAGE)
_RULE = _closed(
    "id shortDescription fullDescription help defaultConfiguration",
    id=_TEXT,
    name={"type": "string", "pattern": r"^\w+$"},
    shortDescription=_MESSAGE,
    fullDescription=_MESSAGE,
    help=_MESSAGE,
    helpUri=_URI,
    defaultConfiguration=_closed("level", level=_LEVEL),
    relationships=_list(_closed("target kinds", target=_TAXON, kinds=_list({"enum": ["superset", "relevant"]}))),
    properties=_closed(
        "security-severity precision tags",
        **{
            "security-severity": {"type": "string", "pattern": r"^(10\.0|\d\.\d)$"},
            "precision": {"enum": ["very-high", "high", "medium", "low"]},
            "tags": _list(_TEXT, uniqueItems=True, maxItems=20),
        },
    ),
)
_DRIVER = _closed(
    "name rules",
    name=_TEXT,
    semanticVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
    rules=_list(_RULE, uniqueItems=True),
    notifications=_list(_closed("id", id=_TEXT, shortDescription=_MESSAGE)),
    supportedTaxonomies=_list(_COMPONENT),
)
_RESULT = _closed(
    "ruleId ruleIndex level message locations partialFingerprints suppressions",
    ruleId=_TEXT,
    ruleIndex=_INDEX,
    level=_LEVEL,
    message=_MESSAGE,
    locations=_list(_LOCATION, minItems=1, maxItems=1),
    partialFingerprints={"type": "object", "minProperties": 1, "additionalProperties": _TEXT},
    taxa=_list(_TAXON),
    suppressions=_list(
        _closed("kind", kind={"enum": ["inSource"]}, status={"enum": ["underReview"]}, justification=_TEXT)
    ),
    codeFlows=_list(
        _closed(
            "threadFlows",
            threadFlows=_list(
                _closed("locations", locations=_list(_closed("location", location=_LOCATION), minItems=1)), minItems=1
            ),
        ),
        minItems=1,
    ),
    properties={"type": "object"},
)
_RUN = _closed(
    "tool results invocations taxonomies",
    tool=_closed("driver", driver=_DRIVER),
    taxonomies=_list(
        _closed(
            "name organization isComprehensive taxa",
            name={"const": "CWE"},
            organization={"const": "MITRE"},
            informationUri=_URI,
            shortDescription=_MESSAGE,
            isComprehensive={"type": "boolean"},
            taxa=_list(
                _closed("id shortDescription", id={"pattern": r"^CWE-\d+$"}, shortDescription=_MESSAGE, helpUri=_URI),
                uniqueItems=True,
            ),
        )
    ),
    invocations=_list(
        _closed(
            "executionSuccessful toolExecutionNotifications",
            executionSuccessful={"type": "boolean"},
            toolExecutionNotifications=_list(
                _closed(
                    "descriptor level message locations",
                    descriptor=_closed("id index", id=_TEXT, index=_INDEX),
                    level=_LEVEL,
                    message=_MESSAGE,
                    locations=_list(_LOCATION),
                )
            ),
        ),
        minItems=1,
    ),
    originalUriBaseIds={"type": "object", "additionalProperties": _closed("description", description=_MESSAGE)},
    columnKind={"enum": ["unicodeCodePoints", "utf16CodeUnits"]},
    results=_list(_RESULT),
    properties={"type": "object"},
)
LOG = _closed("$schema version runs", **{"$schema": _URI}, version={"const": "2.1.0"}, runs=_list(_RUN, minItems=1))
