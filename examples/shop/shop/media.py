"""Pictures of products."""

import os
import subprocess
import uuid

from flask import Blueprint, abort, jsonify, request
from werkzeug.utils import secure_filename

from shop.settings import MEDIA_ROOT

pages = Blueprint("media", __name__)
PICTURES = {"png", "jpg", "webp"}
SIZES = {"small": "200x200", "large": "1200x1200"}


@pages.post("/media/logo")
def logo():
    """A dealer's logo."""
    sent = request.files["logo"]
    target = os.path.join(MEDIA_ROOT, "logos", secure_filename(sent.filename))
    sent.save(target)
    os.chmod(target, 0o666)
    return jsonify(ok=True)


@pages.post("/media/picture")
def picture():
    """A product's picture, under a name of ours."""
    sent = request.files["picture"]
    extension = sent.filename.rsplit(".", 1)[-1].lower()
    if extension not in PICTURES:
        abort(400)
    target = os.path.join(MEDIA_ROOT, f"{uuid.uuid4().hex}.{extension}")
    sent.save(target)
    os.chmod(target, 0o640)
    return jsonify(name=os.path.basename(target))


@pages.post("/media/scale")
def scale():
    """Make a picture smaller."""
    name = os.path.basename(request.form["name"])
    size = SIZES[request.form.get("size", "small")]
    path = os.path.join(MEDIA_ROOT, name)
    done = subprocess.run(["convert", path, "-resize", size, path], check=False)
    return jsonify(ok=done.returncode == 0)


@pages.post("/media/watermark")
def watermark():
    """Write the dealer's name on a picture."""
    label = request.form["label"]
    command = f"convert {MEDIA_ROOT}/base.png -annotate 0 {label} {MEDIA_ROOT}/marked.png"
    subprocess.run(command, shell=True, check=False)
    return jsonify(ok=True)
