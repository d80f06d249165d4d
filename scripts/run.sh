#!/bin/sh
# What `make run` does: set up, start the platform, audit the example shop, ask one question in Chinese and one in English,
# then keep serving (ONCE=1: stop). BIN is the environment's folder of programs.
set -eu
casemate="${BIN:-.venv/bin}/casemate"
step() { printf '\n\033[1m== %s\033[0m\n' "$1" >&2; }

platform=
child=
run() { # in the background, so that a signal is obeyed at once and not when the command has ended
    code=0
    "$casemate" "$@" &
    child=$!
    wait "$child" || code=$?
    child=
    return "$code"
}
stop() {
    for process in $child $platform; do
        kill "$process" 2>/dev/null && wait "$process" || true
    done
    return 0
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step "fetch what is pinned: model and sources of the graph"
run fetch || echo "going on with what is here" >&2

step "build the knowledge graph"
run kb build || echo "going on without the graph" >&2

step "start engine and gateway"
if "$casemate" status >/dev/null; then
    echo "the platform that runs already is used" >&2
else
    "$casemate" up &
    platform=$!
    until "$casemate" status >/dev/null; do
        if ! kill -0 "$platform" 2>/dev/null; then
            wait "$platform" || [ $? -eq 1 ] || exit 3 # 1: no model fits here; anything else is a fault, told above
            echo "going on with rules and graph alone" >&2
            platform=
            break
        fi
        sleep 1
    done
fi

step "audit examples/shop: findings first, then the model's explanations"
run audit examples/shop || [ $? -eq 1 ] # 1: something was found, which is what the example is for

step "a question in Chinese"
run ask '这段 Python 代码有没有 SQL 注入风险？如何修复？
import sqlite3
def get_user(user_id):
    conn = sqlite3.connect("app.db")
    cursor = conn.cursor()
    cursor.execute("SELECT * FROM users WHERE id = " + user_id)
    return cursor.fetchone()' || [ $? -eq 1 ]

step "a question in English"
run ask "How does server-side request forgery work, and how do I defend against it?"

if [ -n "${ONCE:-}" ] || [ -z "$platform" ]; then
    exit 0
fi
step "serving: Ctrl-C stops"
run status
wait "$platform"

