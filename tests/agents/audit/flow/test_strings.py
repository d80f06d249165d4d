"""Data in text: building in all forms, encodings, methods, constants."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### building in all forms
def h():
    q = Q
    run("ls " + q)  # bad
    run("ls %s" % q)  # bad
    run("ls %(a)s" % {"a": q})  # bad
    run("ls %d" % int(request.args["n"]))
    run("ls {}".format(q))  # bad
    run("ls {a}".format(a=q))  # bad
    run("ls {a}".format_map({"a": q}))  # bad
    run(f"ls {q}")  # bad
    run(f"ls {q!r}")  # bad
    run(f"ls {len(q)}")
    run(" ".join(["ls", q]))  # bad
    run(" ".join(["ls", "-l"]))
    run("ls" " -l")
    run(q * 2)  # bad
    run(str(q))  # bad

#### parts that are not used
def h():
    run("ls {1}".format(Q, "x"))
    run("ls {0}".format(Q, "x"))  # bad
    run("ls {a}".format(a="x", b=Q))
    run("ls %(a)s" % {"a": "x", "b": Q})
    run("ls".format(Q))
    run("{:d}".format(int(request.args["n"])))
    run("ls {d[a]}".format(d={"a": Q}))  # bad

#### template substitution
from string import Template
import string
def h():
    run(Template("ls $a").substitute(a=Q))  # bad
    run(Template("ls $a").safe_substitute({"a": Q}))  # bad
    run(string.Template("ls $a").substitute(a="x"))

#### adding up
def h():
    s = "ls"
    s += " "
    s += Q
    run(s)  # bad
    t = "ls"
    t += " -l"
    run(t)

#### in memory files
import io
from io import StringIO
def h():
    f = StringIO()
    f.write("ls ")
    f.write(Q)
    run(f.getvalue())  # bad
    g = io.StringIO(Q)
    run(g.read())  # bad
    k = io.StringIO()
    k.write("ls")
    run(k.getvalue())
    b = io.BytesIO(Q.encode())
    run(b.getvalue().decode())  # bad
    w = io.StringIO()
    w.writelines(["a", Q])
    w.seek(0)
    run(w.read())  # bad

#### bytes
def h():
    run(bytes(Q, "utf-8").decode())  # bad
    run(Q.encode().decode("utf-8"))  # bad
    run(b"ls".decode())
    run(bytearray(Q.encode()).decode())  # bad
    run(b"ls %s" % Q.encode())  # bad

#### methods
import textwrap
def h():
    run(Q.strip().lower())  # bad
    run(Q.replace("a", "b"))  # bad
    run(Q.split(",")[0])  # bad
    run(Q.partition(":")[2])  # bad
    run(Q.translate(str.maketrans("", "", "x")))  # bad
    run(textwrap.dedent(Q))  # bad
    run(Q.removeprefix("x"))  # bad
    run(Q.zfill(4))  # bad
    run(Q[1:])  # bad
    run(Q[::-1])  # bad
    run("".join(reversed(Q)))  # bad
    run("ls".replace("l", Q))  # bad
    run("ls".replace("l", "x"))
    run("a,b".split(",")[0])
    run(str(Q.isdigit()))
    run(str(Q.startswith("x")))
    run(Q.title())  # bad
    run(Q.center(20))  # bad
    run(Q.splitlines()[0])  # bad
    run("x".join(Q))  # bad

#### encodings there and back
import base64
import binascii
import codecs
import json
import urllib.parse
from urllib.parse import quote, unquote
def h():
    q = Q
    run(base64.b64decode(base64.b64encode(q.encode())).decode())  # bad
    run(base64.b64decode(q).decode())  # bad
    run(base64.b64encode(q.encode()).decode())
    run(unquote(q))  # bad
    run(unquote(quote(q)))  # bad
    run(urllib.parse.unquote_plus(q))  # bad
    run(json.loads(json.dumps({"a": q}))["a"])  # bad
    run(json.loads(q)["a"])  # bad
    run(codecs.decode(q, "rot13"))  # bad
    run(codecs.encode(q, "rot13"))  # bad
    run(bytes.fromhex(q).decode())  # bad
    run(binascii.a2b_base64(q).decode())  # bad
    run(binascii.hexlify(q.encode()).decode())
    run(base64.b32decode(q).decode())  # bad

#### an escape that is undone
import html
import shlex
from flask import make_response
@app.route("/a")
def a(): return html.escape(Q)
@app.route("/b")
def b(): return html.unescape(html.escape(Q))  # bad
@app.route("/c")
def c(): return "<p>" + html.escape(Q) + "</p>"
@app.route("/d")
def d(): return "<p>" + Q + "</p>"  # bad
def e():
    run("ls " + shlex.quote(Q))

#### constant folding
A = 7
NAMES = ("x", "y")
def h():
    q = Q
    run("ls" if 7 * 18 + A > 100 else q)
    run(q if 7 * 18 + A > 1000 else "ls")
    run(q if A == 7 else "ls")  # bad
    run(q if len("abc") == 4 else "ls")
    run(q if "abc"[1] == "a" else "ls")
    run(q if "abc"[0:2] == "ab" else "ls")  # bad
    run(q if "abc"[0:2] == "bc" else "ls")
    run(q if "a" in "bcd" else "ls")
    run(q if "x" in NAMES else "ls")  # bad
    run(q if "z" in NAMES else "ls")
    run(q if not True else "ls")
    run(q if True and False else "ls")
    run(q if False or True else "ls")  # bad
    run(q if "A".lower() == "b" else "ls")
    run(q if 1 < 2 < 1 else "ls")
    run(q if NAMES[0] == "y" else "ls")
    run(q if len(NAMES) > 3 else "ls")
    run(q if "abc".startswith("b") else "ls")
    run(q if isinstance("x", int) else "ls")
    run(q if (5 % 2) == 0 else "ls")
    run(q if -1 > 0 else "ls")
    run(q if 6 & 1 else "ls")
    run(q if 2 ** 3 == 9 else "ls")
    run(q if 7 // 2 == 3 else "ls")  # bad
    run(q if None is not None else "ls")
    run(q if int("3") == 4 else "ls")
    run(q if "a" + "b" == "ba" else "ls")
    run(q if "%s" % "a" == "b" else "ls")
    run(q if f"{A}" == "8" else "ls")
    run(q if "" else "ls")
    run(q if [] else "ls")
    run(q if {} else "ls")
    run(q if bool("") else "ls")
    run(q if max(1, 2) == 1 else "ls")
    run(q if abs(-1) == 2 else "ls")
    run(q if str(1) == "2" else "ls")
    run(q if ord("a") == 98 else "ls")

#### enums and constant objects
from enum import Enum
class Mode(Enum):
    ON = "on"
    OFF = "off"
class Conf:
    debug = False
    level = 3
def h():
    q = Q
    mode = Mode.OFF
    run(q if mode == Mode.ON else "ls")
    run(q if Mode.OFF.value == "on" else "ls")
    run(q if Conf.debug else "ls")
    run(q if Conf.level == 3 else "ls")  # bad
    run(Mode(Q).value)
    run(Mode[Q].value)

#### numbers and fresh secrets carry nothing
import hashlib
import secrets
import time
import uuid
def h():
    run("ls " + str(int(Q)))
    run("ls " + str(float(Q)))
    run("ls " + str(uuid.UUID(Q)))
    run("ls " + hashlib.sha256(Q.encode()).hexdigest())
    run("ls " + str(uuid.uuid5(uuid.NAMESPACE_DNS, Q)))
    run("ls " + str(len(Q)))
    run("ls " + str(bool(Q)))
    run("ls " + secrets.token_hex(8))
    run("ls " + str(hash(Q)))
    run("ls " + hex(int(Q)))

#### unknown library calls pass on what they get
import somelib
def h():
    run(somelib.tidy(Q))  # bad
    run(somelib.Thing(Q).value)  # bad
    run(somelib.tidy("ls"))
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
