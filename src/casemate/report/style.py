"""The report page's style sheet. Apart, so that its hash can stand in a content security policy."""

CSS = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6575; --paper: #fff; --tint: #f4f6f9; --line: #d9dfe8;
  --accent: #1f5fbf; --good: #1a7f45; --bad: #b3261e; --warn: #8a5a00; --note: #1f5fbf; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --soft: #a3adbd; --paper: #14181f; --tint: #1d232d; --line: #333c4a;
    --accent: #8ab4f8; --good: #6fd39a; --bad: #ff9b92; --warn: #f2c063; --note: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.6;
  font-family: system-ui, -apple-system, "Segoe UI", "Noto Sans", "PingFang SC", "Microsoft YaHei",
    "Noto Sans CJK SC", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1.25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .9rem; padding-bottom: .35rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
p { margin: .6rem 0; overflow-wrap: anywhere; }
a { color: var(--accent); overflow-wrap: anywhere; }
article { border: 1px solid var(--line); border-radius: .6rem; padding: 1.1rem 1.25rem; margin: 1.1rem 0; }
section, article { scroll-margin-top: 1rem; }
nav { margin: 1.25rem 0 0; padding: .8rem 1rem; border: 1px solid var(--line); border-radius: .6rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.5rem; list-style: none; padding: 0; margin: .3rem 0 0; }
article { border-left-width: .3rem; }
article.critical, article.high { border-left-color: var(--bad); } article.medium { border-left-color: var(--warn); }
article.low, article.info { border-left-color: var(--note); }
input[name=only] { position: absolute; opacity: 0; }
input[name=only] + label { display: inline-block; margin: 0 .4rem .5rem 0; padding: .2rem .8rem; cursor: pointer;
  border: 1px solid var(--line); border-radius: 1rem; font-size: .92rem; }
input[name=only]:checked + label { background: var(--ink); color: var(--paper); border-color: var(--ink); }
input[name=only]:focus-visible + label { outline: 2px solid var(--accent); outline-offset: 2px; }
#only-critical:checked ~ article:not(.critical), #only-high:checked ~ article:not(.high),
#only-medium:checked ~ article:not(.medium), #only-low:checked ~ article:not(.low),
#only-info:checked ~ article:not(.info) { display: none; }
details { margin: .9rem 0; } summary { cursor: pointer; color: var(--accent); }
.steps { padding-left: 1.4rem; margin: .3rem 0; } .steps li { margin: .45rem 0; overflow-wrap: anywhere; }
.steps pre { margin-top: .25rem; padding: .4rem .7rem; }
.place { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9em; }
.line { display: inline-block; min-width: 2.2em; margin-right: 1em; text-align: right; color: var(--soft);
  user-select: none; }
mark { background: none; color: inherit; border-bottom: 2px solid var(--bad); }
del { color: var(--bad); text-decoration: none; } ins { color: var(--good); text-decoration: none; }
.verdict { margin: .9rem 0; padding: .7rem 1rem; border-left: .3rem solid var(--note); background: var(--tint);
  border-radius: .3rem; font-weight: 600; }
.good { border-color: var(--good); } .bad { border-color: var(--bad); } .warn { border-color: var(--warn); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: .8rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .9rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .94rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .75rem .45rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
figure { margin: .9rem 0; }
figcaption { color: var(--soft); font-size: .88rem; margin-bottom: .25rem; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono",
    "Noto Sans Mono CJK SC", monospace;
  font-size: .9em; }
code { background: var(--tint); border-radius: .25rem; padding: .08em .3em; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: .4rem; padding: .75rem .9rem; margin: 0;
  overflow-x: auto; white-space: pre; tab-size: 4; }
pre code { background: none; padding: 0; }
blockquote { margin: .9rem 0; padding: .1rem 1rem .3rem; border: 1px dashed var(--line); border-radius: .4rem; }
blockquote cite { display: block; margin-top: .5rem; font-style: normal; font-size: .88rem; color: var(--soft); }
ul { margin: .25rem 0; padding-left: 1.2rem; font-size: .92rem; }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; gap: 0 0; } dd { margin-bottom: .5rem; } }
@media print { nav, input[name=only], input[name=only] + label { display: none; }
  main { max-width: none; padding: 0; } article, table, figure { break-inside: avoid; }
  pre { white-space: pre-wrap; } :root { --ink: #000; --paper: #fff; --tint: #f6f6f6; --soft: #444; } }
"""
