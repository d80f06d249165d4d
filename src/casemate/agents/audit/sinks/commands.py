"""Where untrusted data is run: commands of the system, Python's own code, templates, objects that name their class."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Parameter, Value
from casemate.agents.audit.facts.values import Source as Untrusted
from casemate.agents.audit.sinks.table import Table, all_of, joined, members, rows, sink

_COMMAND = ("command-injection", "command")
_CODE = ("code-injection", "code")
_MODULE = ("code-injection", "module")
_PROGRAM = ("command-injection", "program")
_EVAL = ("eval-injection", "code")
_TEMPLATE = ("template-injection", "template")
_OBJECT = ("unsafe-deserialization", "object")

_SHELLS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "ash", "cmd", "cmd.exe", "powershell", "powershell.exe", "pwsh"}
)
_INTERPRETERS = frozenset({"python", "python3", "perl", "ruby", "node", "php"})
_REMOTE = frozenset({"ssh", "rsh", "docker", "kubectl", "su", "eval"})
_CARRIERS = frozenset({"sudo", "env", "nohup", "nice", "time", "timeout", "xargs", "exec", "stdbuf", "setsid", "doas"})
_SCRIPT_OPTIONS = frozenset({"-c", "-e", "/c", "/C", "/k", "-lc", "-ic", "-ec", "-Command", "-command", "-r", "--eval"})

_SHELL_TEXT = (
    "os.system os.popen os.popen2 os.popen3 os.popen4 commands.getoutput commands.getstatusoutput platform.popen "
    "subprocess.getoutput subprocess.getstatusoutput asyncio.create_subprocess_shell popen2.popen2 popen2.popen3 "
    "asyncio.subprocess.create_subprocess_shell invoke.run invoke.sudo fabric.api.run fabric.api.local .exec_command "
    "fabric.api.sudo fabric.operations.run fabric.operations.local .subprocess_shell os.startfile "
    "invoke.Context().run invoke.Context().sudo invoke.context.Context().run fabric.Connection().run "
    "fabric.Connection().sudo fabric.Connection().local fabric2.Connection().run asyncssh.connect().run "
    "asyncssh.connect().create_process pexpect.runu anyio.run_process trio.run_process"
)
_RUN = "subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen"
_LISTS = "pty.spawn asyncio.subprocess.Popen"
_EXEC = (
    "os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe asyncio.create_subprocess_exec "
    "asyncio.subprocess.create_subprocess_exec os.posix_spawn os.posix_spawnp sh.Command"
)
_SPAWN = "os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve os.spawnvp os.spawnvpe"
_SELF_SPLIT = "pexpect.spawn pexpect.run pexpect.spawnu pexpect.popen_spawn.PopenSpawn pexpect.pxssh.pxssh().sendline"

_EXECUTED = (
    "exec compile builtins.exec builtins.compile execfile "
    "code.InteractiveInterpreter().runsource code.InteractiveInterpreter().runcode code.InteractiveConsole().push "
    "code.InteractiveConsole().runsource timeit.timeit timeit.repeat timeit.Timer "
    "cProfile.run profile.run pdb.run bdb.Bdb().run redis.Redis().eval redis.StrictRedis().eval js2py.eval_js "
    "importlib.machinery.SourceFileLoader.load_module codeop.compile_command"
)
_IMPORTED = "importlib.import_module __import__ builtins.__import__ runpy.run_path runpy.run_module"
_BY_FILE = "imp.load_source importlib.util.spec_from_file_location importlib.machinery.SourceFileLoader"
_EVALUATED = (
    "eval builtins.eval pandas.eval numexpr.evaluate sympy.sympify sympy.parse_expr sympy.S "
    "sympy.parsing.sympy_parser.parse_expr"
)
_FRAME_MAKERS = frozenset({"DataFrame", "read_csv", "read_excel", "read_parquet", "read_json", "read_sql", "concat"})

_TEMPLATES = (
    "flask.render_template_string jinja2.Template mako.template.Template quart.render_template_string "
    "django.template.Template tornado.template.Template render_template_string bottle.SimpleTemplate "
    "chameleon.PageTemplate chameleon.PageTextTemplate bottle.template jinja2.environment.Template "
    "bottle.jinja2_template flask.templating.render_template_string django.template.base.Template "
    "web.template.Template Cheetah.Template.Template genshi.template.MarkupTemplate genshi.template.TextTemplate "
    "genshi.template.NewTextTemplate bottle.mako_template django.template.engine.Engine().from_string "
    "flask.stream_template_string"
)

_LOADERS = (
    "pickle.loads pickle.load pickle.Unpickler pickle._Unpickler cPickle.loads cPickle.load _pickle.loads "
    "_pickle.load dill.loads dill.load cloudpickle.loads cloudpickle.load marshal.loads marshal.load shelve.open "
    "shelve.DbfilenameShelf jsonpickle.decode jsonpickle.loads jsonpickle.unpickler.decode joblib.load "
    "sklearn.externals.joblib.load pandas.read_pickle pandas.io.pickle.read_pickle pickle5.loads pickle5.load "
    "cPickle.Unpickler dill.Unpickler torch.jit.load"
)


def _with_shell(call: Invocation) -> bool:
    return call.is_set("shell")


def _without_shell(call: Invocation) -> bool:
    return not call.is_set("shell")


@dataclass(frozen=True, slots=True)
class _Started:
    """What a list of words starts: the program, and the text that it is told to run if it is a shell or the like."""

    program: Value = NOTHING
    script: Value = NOTHING


def _started(words: list[Value]) -> _Started:
    while len(words) > 1 and words[0].constant in _CARRIERS:
        words = words[1:]
        while len(words) > 1 and str(words[0].constant).startswith("-"):
            words = words[1:]
    if not words:
        return _Started()
    first = words[0]
    name = first.constant.rpartition("/")[2] if isinstance(first.constant, str) else ""
    if name in _REMOTE:
        return _Started(script=all_of(words[1:]))
    if name not in _SHELLS | _INTERPRETERS and first.name != "sys.executable":
        return _Started(program=first)
    for option, script in itertools.pairwise(words):
        if option.constant in _SCRIPT_OPTIONS:
            return _Started(script=script)
    return _Started(script=all_of(words[1:2]) if name in _SHELLS else NOTHING)


def _of_list(call: Invocation) -> _Started:
    """Without a shell only the program itself, or what a shell is told to run, is dangerous."""
    command = call.argument(0, "args")
    words = members(command)
    if words:
        return _started(words)
    whole = command.items is None and ("built" in command.marks or _straight(command))
    return _Started(program=command) if whole else _Started()


def _straight(value: Value) -> bool:
    """Whether all of a value is the client's own; of what callers pass, only they know which word is first."""
    own = bool(value.taints) and all(isinstance(origin, Untrusted) for origin in value.taints)
    return own and "json" not in value.marks


def _of_words(call: Invocation) -> _Started:
    """`os.execl(path, arg0, …)` and `os.execv(path, [arg0, …])`; `os.spawn…` has a mode before them."""
    arguments = list(call.args[1:] if ".spawn" in call.name else call.args)
    if not arguments:
        return _Started()
    rest = members(arguments[1]) if len(arguments) > 1 else []
    return _started([arguments[0], *(rest or arguments[1:])])


def _told(call: Invocation) -> Value:
    """What `sh.bash("-c", text)` runs."""
    return _started([Value(constant="sh"), *call.args]).script


def _one_text(call: Invocation) -> bool:
    """Pexpect takes a text apart itself unless it is given a list."""
    return len(call.args) < 2 and "args" not in call.keywords


def _is_frame(call: Invocation) -> bool:
    owner = call.name.rpartition(".")[0]
    return owner.startswith("pandas.") and owner.split("(")[0].rpartition(".")[2] in _FRAME_MAKERS


def _is_engine(call: Invocation) -> bool:
    owner = call.name.rpartition(".")[0].lower()
    return "sandbox" not in owner and any(word in owner for word in ("jinja", "engine", "environment", "env"))


def _whole_objects(call: Invocation) -> bool:
    return call.keywords.get("weights_only", NOTHING).constant is not True


def _with_pickles(call: Invocation) -> bool:
    return call.is_set("allow_pickle")


def _by_caller(call: Invocation) -> Value:
    """A file of code by its path; what callers pass is theirs to know."""
    path = call.argument(1, "location")
    return path if not any(isinstance(origin, Parameter) for origin in path.taints) else NOTHING


TABLE: Table = joined(
    (
        rows(sink(_COMMAND, 0, "cmd", "command", "args"), _SHELL_TEXT),
        rows(sink(_COMMAND, 0, "args", when=_with_shell), _RUN),
        rows(sink(_COMMAND, when=_without_shell, reach=lambda call: _of_list(call).script), _RUN, _LISTS),
        rows(sink(_PROGRAM, when=_without_shell, reach=lambda call: _of_list(call).program), _RUN, _LISTS),
        rows(sink(_COMMAND, reach=lambda call: _of_words(call).script), _EXEC, _SPAWN),
        rows(sink(_PROGRAM, reach=lambda call: _of_words(call).program), _EXEC, _SPAWN),
        rows(sink(_COMMAND, 0, "command", when=_one_text), _SELF_SPLIT),
        rows(sink(_COMMAND, reach=_told), "sh.bash sh.sh sh.zsh"),
        rows(sink(_CODE, 0, "source", "stmt", "name"), _EXECUTED),
        rows(sink(_MODULE, 0, "name", "mod_name", "path_name"), _IMPORTED),
        rows(sink(_MODULE, reach=_by_caller), _BY_FILE),
        rows(sink(_EVAL), _EVALUATED),
        rows(sink(_EVAL, 0, "expr", when=_is_frame), ".query .eval"),
        rows(sink(_TEMPLATE, 0, "source", "text", "template_string"), _TEMPLATES),
        rows(sink(_TEMPLATE, 0, "source", "template_code", when=_is_engine), ".from_string"),
        rows(sink(_OBJECT, 0, "file", "filepath_or_buffer", "string"), _LOADERS),
        rows(sink(_OBJECT, 0, "f", when=_whole_objects), "torch.load"),
        rows(sink(_OBJECT, 0, "file", when=_with_pickles), "numpy.load"),
    )
)
