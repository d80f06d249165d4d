#!/bin/sh
# What `make run` does: set up, start the platform, audit the example shop, ask one question in Chinese and one in English,
# then keep serving (ONCE=1: stop). BIN is the environment's folder of programs.
set -eu
casemate="${BIN:-.venv/bin}/casemate"
step() { printf '\n\033[1m== %s\033[0m\n' "$1" >&2; }

platform=
stop() {
    [ -z "$platform" ] && return
    "$casemate" down || true
    wait "$platform" || true
    platform=
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step "fetch what is pinned: model and sources of the graph"
"$casemate" fetch || echo "going on with what is here" >&2

step "build the knowledge graph"
"$casemate" kb build || echo "going on without the graph" >&2

step "start engine and gateway"
"$casemate" up &
platform=$!
"$casemate" status --wait 120

step "audit examples/shop: findings first, then the model's explanations"
code=0
"$casemate" audit examples/shop || code=$?
[ "$code" -le 1 ] || exit "$code" # 1: something was found, which is what the example is for

step "a question in Chinese"
"$casemate" ask '这段 Python 代码有没有 SQL 注入风险？如何修复？
import sqlite3
def get_user(user_id):
    conn = sqlite3.connect("app.db")
    cursor = conn.cursor()
    cursor.execute("SELECT * FROM users WHERE id = " + user_id)
    return cursor.fetchone()' || [ $? -eq 1 ]

step "a question in English"
"$casemate" ask "How does server-side request forgery work, and how do I defend against it?"

if [ -n "${ONCE:-}" ]; then
    step "stop"
    exit 0
fi
step "serving: Ctrl-C stops"
"$casemate" status
wait "$platform"
