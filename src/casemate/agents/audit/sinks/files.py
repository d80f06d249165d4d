"""Where untrusted data decides about files: their paths, the names of uploads, and documents that name files."""

from __future__ import annotations

import re

from casemate.agents.audit.facts.sink import Invocation, Sink
from casemate.agents.audit.facts.values import NOTHING, Taints, Value
from casemate.agents.audit.facts.values import Source as Untrusted
from casemate.agents.audit.sinks.table import Table, all_of, built_only, joined, rows, sink
from casemate.agents.audit.vocabulary.frameworks import is_upload
from casemate.finding import Confidence

_PATH = ("path-traversal", "path")
_UPLOAD = ("unrestricted-upload", "upload")
_XML = "xml-external-entity"

_OPENED = (
    "open io.open os.open codecs.open os.remove os.unlink os.rmdir os.removedirs os.mkdir os.makedirs os.listdir "
    "os.scandir os.walk os.readlink os.chmod os.chown os.truncate os.mkfifo shutil.rmtree flask.send_file send_file "
    "quart.send_file aiofiles.open aiofiles.os.remove aiofiles.os.unlink anyio.open_file gzip.open bz2.open lzma.open "
    "linecache.getlines linecache.getline "
    "starlette.responses.FileResponse fastapi.responses.FileResponse fastapi.FileResponse aiohttp.web.FileResponse "
    "litestar.response.File sanic.response.file sanic.response.file_stream django.http.FileResponse "
    "cv2.imread fileinput.FileInput fileinput.input glob.glob glob.iglob shutil.unpack_archive logging.FileHandler "
    "zipfile.Path os.chdir os.utime tempfile.TemporaryDirectory runpy.run_path cherrypy.lib.static.serve_file "
    "flask.Flask().open_resource flask.current_app.open_resource django.views.static.serve"
)
_EITHER = (
    "PIL.Image.open pandas.read_csv pandas.read_excel pandas.read_json pandas.read_parquet pandas.read_table "
    "pandas.read_xml pandas.read_html numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile"
)
"""What takes a path or an open file alike."""
_ARCHIVES = "tarfile.open tarfile.TarFile zipfile.ZipFile zipfile.PyZipFile py7zr.SevenZipFile rarfile.RarFile"
_METHODS = (
    ".read_text .read_bytes .write_text .write_bytes .unlink .rmdir .mkdir .iterdir .touch pathlib.Path().open "
    "pathlib.Path().glob pathlib.Path().rglob pathlib.Path().rename pathlib.Path().replace pathlib.Path().symlink_to "
    "pathlib.Path().chmod pathlib.Path().stat pathlib.Path().hardlink_to anyio.Path().open"
)
_PAIRS = (
    "os.rename os.replace os.renames os.link os.symlink shutil.copy shutil.copy2 shutil.copyfile shutil.copytree "
    "shutil.move shutil.copymode shutil.make_archive"
)
_FOLDERS = "flask.send_from_directory send_from_directory quart.send_from_directory"
_WRITERS = "open io.open codecs.open aiofiles.open anyio.open_file"
_WRITES = re.compile(r"[wax+]")
_IN_MEMORY = re.compile(
    r"(?:\.(?:files|FILES)(?:\[\]|\.getlist\(\)\[\])|\.stream|\.file|\.buffer|BytesIO\(\)|StringIO\(\)|open\(\)|urlopen\(\))$"
)
_LXML = "lxml.etree.parse lxml.etree.fromstring lxml.etree.XML lxml.objectify.fromstring lxml.objectify.parse"


def _paths(*arguments: int | str) -> Sink:
    """A sink for paths; an open file or an upload itself is none."""

    def reach(call: Invocation) -> Value:
        given = (call.argument(at) if isinstance(at, int) else call.argument(-1, at) for at in arguments)
        return all_of(NOTHING if _IN_MEMORY.search(value.name) else value for value in given)

    return sink(_PATH, reach=reach)


def _archive(call: Invocation) -> Value:
    name = call.argument(0, "file" if "zipfile" in call.name else "name")
    if _IN_MEMORY.search(name.name):
        return NOTHING
    return name if all(isinstance(origin, Untrusted) for origin in name.taints) else built_only(name)


def _either(call: Invocation) -> Value:
    """A path that was put together, or a client's own text; what callers pass may be an open file."""
    path = all_of(NOTHING if _IN_MEMORY.search(value.name) else value for value in call.args[:1])
    return path if all(isinstance(origin, Untrusted) for origin in path.taints) else built_only(path)


def _root(call: Invocation) -> Value:
    return all_of((call.argument(1, "root"),))


def _unfiltered(call: Invocation) -> bool:
    """Before Python 3.14 a member of a tar archive is put where it asks for, unless a filter is named."""
    chosen = call.keywords.get("filter", NOTHING)
    return chosen is NOTHING or chosen.constant == "fully_trusted" or chosen.name.endswith("fully_trusted_filter")


def _writes(call: Invocation) -> bool:
    mode = call.argument(1, "mode").constant
    return isinstance(mode, str) and bool(_WRITES.search(mode))


def _uploaded(value: Value) -> Value:
    """Only what came with an upload; of anything else the content is not the sender's."""
    taints: Taints = {
        origin: cleared
        for origin, cleared in value.everything().items()
        if isinstance(origin, Untrusted) and is_upload(origin.key)
    }
    return Value(taints=taints)


def _uploaded_name(call: Invocation) -> Value:
    return _uploaded(call.argument(0, "file"))


def _uploaded_receiver(call: Invocation) -> Value:
    return _uploaded(call.receiver)


def _saves_upload(call: Invocation) -> bool:
    """`save` of an upload itself, not of a model or an image."""
    owner = call.name.rpartition(".")[0]
    return ".files" in owner.lower() or "FileStorage" in owner


def _unsafe_parser(call: Invocation) -> bool:
    """Lxml's own default parser, or none given: entities of a document are expanded before lxml 5."""
    parser = call.argument(1, "parser")
    return not parser.name or ("safe" not in parser.marks and "XMLParser" in parser.name)


def _resolves(call: Invocation) -> bool:
    return call.keywords.get("resolve_entities", Value(constant=True)).constant not in {False, "internal"}


_MEDIUM = Confidence.MEDIUM
TABLE: Table = joined(
    (
        rows(_paths(0, "file", "path", "filename", "path_or_file", "name", "filepath_or_buffer"), _OPENED),
        rows(Sink(*_PATH, reach=_archive, ends=False), _ARCHIVES),
        rows(sink(_PATH, reach=_either), _EITHER),
        rows(sink(_PATH, -1), _METHODS),
        rows(_paths(0, 1, "src", "dst", "base_name"), _PAIRS),
        rows(_paths(1, "extract_dir"), "shutil.unpack_archive"),
        rows(_paths(0, "directory"), _FOLDERS),
        rows(sink(_PATH, 0, "member", when=_unfiltered), "tarfile.open().extract tarfile.TarFile().extract"),
        rows(sink(_PATH, reach=_root), "bottle.static_file"),
        rows(_paths(0, "location"), "django.core.files.storage.FileSystemStorage"),
        rows(sink(_PATH, 0, "dst", when=_saves_upload), ".save"),
        rows(Sink(*_UPLOAD, (0, "dst"), _saves_upload, _MEDIUM), ".save"),
        rows(Sink(*_UPLOAD, when=_writes, confidence=_MEDIUM, reach=_uploaded_name), _WRITERS),
        rows(Sink(*_UPLOAD, confidence=_MEDIUM, reach=_uploaded_receiver), ".write_bytes"),
        rows(
            Sink(*_UPLOAD, confidence=_MEDIUM, reach=_uploaded_name),
            "django.core.files.storage.FileSystemStorage().save django.core.files.storage.default_storage.save",
        ),
        rows(Sink(_XML, "xml", (0,), _unsafe_parser, _MEDIUM), _LXML),
        rows(Sink(_XML, "xml", (0,), _resolves, _MEDIUM), "lxml.etree.iterparse"),
    )
)
