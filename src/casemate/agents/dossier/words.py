"""What a report of an audit says itself, in both languages. One value a language, as in `agents.phrases`."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.agents.phrases import Language


@dataclass(frozen=True, slots=True)
class Wordings:
    """Every fixed sentence of the report; braces are filled with `str.format`."""

    report_title: str
    contents: str
    summary: str
    found: str
    worst: str
    clean: str
    clean_but: str
    incomplete: str
    incomplete_clean: str
    nothing_analysed: str
    limited: str
    first: str
    first_step: str
    overview: str
    by_severity: str
    by_kind: str
    by_folder: str
    folder: str
    top_folder: str
    other_folders: str
    total: str
    place_count: str
    findings: str
    all: str
    not_detailed: str
    not_detailed_note: str
    known: str
    known_note: str
    hidden: str
    hidden_note: str
    suppressed: str
    suppressed_count: str
    honoured: str
    yes: str
    no: str
    trend: str
    trend_counts: str
    unseen: str
    gone: str
    gone_note: str
    more: str
    rule: str
    coverage: str
    everything_looked_at: str
    coverage_note: str
    analysed: str
    searched: str
    skipped: str
    failed: str
    remarks: str
    file: str
    reason: str
    first_files: str
    clauses_touched: str
    clauses_note: str
    framework: str
    clause: str
    clause_title: str
    basis: str
    numbers: str
    curated: str
    official: str
    step: str
    fix_in_place: str
    guidance: str
    about: str
    technique_basis: str
    exploited: str
    cell: str
    scope: str
    seen: str
    seen_note: str


_ENGLISH = Wordings(
    report_title="Code audit: {root}",
    contents="Contents",
    summary="Summary",
    found="{open} findings in {analysed} analysed files{worst}.",
    worst=", the worst is {severity}",
    clean="Clean: no findings in {analysed} analysed files.",
    clean_but="Nothing new in {analysed} analysed files; {hidden} findings are known or suppressed, see below.",
    incomplete="Incomplete: {failed} of {files} files could not be analysed; {open} findings in the rest.",
    incomplete_clean=(
        "Incomplete: {failed} of {files} files could not be analysed; no findings in the rest, which is not "
        "a clean result."
    ),
    nothing_analysed="Nothing was analysed, so nothing can be said.",
    limited="Limited: {limits}.",
    first="What to do first",
    first_step="{title} ({severity}, {count})",
    overview="Where the risk lies",
    by_severity="By severity",
    by_kind="By kind",
    by_folder="By folder",
    folder="Folder",
    top_folder="(top folder)",
    other_folders="{count} other folders",
    total="total",
    place_count="places: {count}",
    findings="Findings",
    all="all",
    not_detailed="{count} milder findings, not told in full here",
    not_detailed_note="The worst {told} are told in full above; the JSON and SARIF forms hold every one.",
    known="Known from the baseline",
    known_note="These stood in the baseline; they are shown and do not decide the exit code.",
    hidden="Suppressed in the source, honoured",
    hidden_note="Marks in the audited source keep these out of the report, as asked for by --honor-suppressions.",
    suppressed="The source carries a suppression mark for this finding; honoured: no.",
    suppressed_count="Suppressed in the source",
    honoured="{count}, honoured: {answer}",
    yes="yes",
    no="no",
    trend="Against the baseline",
    trend_counts="{new} new, {known} known, {gone} gone",
    unseen=", {unseen} in places that were not looked at now",
    gone="Gone since the baseline",
    gone_note="The baseline has these and the audit found them no more.",
    more="and {count} more",
    rule="Rule",
    coverage="What was not looked at",
    everything_looked_at="Every file was analysed.",
    coverage_note="What was not looked at may hold anything; no finding there says nothing about it.",
    analysed="Files analysed",
    searched="Of these, searched by line only",
    skipped="Files skipped",
    failed="Files failed",
    remarks="Remarks on analysed files",
    file="File",
    reason="Reason",
    first_files="The first of them",
    clauses_touched="Clauses touched",
    clauses_note=(
        "A finding touches a clause; nothing here says that anything complies with one. Curated: the "
        "relation is ours, by reason; official: the framework's publisher names the weakness."
    ),
    framework="Framework",
    clause="Clause",
    clause_title="What it is about",
    basis="Relation",
    numbers="Findings",
    curated="curated",
    official="official",
    step="Step",
    fix_in_place="Fix, lines {first} to {last}",
    guidance="What to do",
    about="About this kind of weakness",
    technique_basis="{technique} ({kind}: {reason})",
    exploited="{count} exploited CVEs of this weakness were used this way (KEV, CTID)",
    cell="cell {number}, line {line}",
    scope="In",
    seen="How far the rules see",
    seen_note=(
        "A finding shows a way that the rules can follow. No finding is no proof of safety: the rules know a "
        "fixed set of weaknesses and cannot see configuration, deployment or business logic."
    ),
)

_CHINESE = Wordings(
    report_title="代码审计：{root}",
    contents="目录",
    summary="概要",
    found="在 {analysed} 个已分析的文件中有 {open} 个发现{worst}。",
    worst="，最严重的为{severity}",
    clean="已分析 {analysed} 个文件，没有发现问题。",
    clean_but="已分析 {analysed} 个文件，没有新的发现；另有 {hidden} 个已知或被抑制的发现，见下文。",
    incomplete="不完整：{files} 个文件中有 {failed} 个未能分析；其余文件中有 {open} 个发现。",
    incomplete_clean="不完整：{files} 个文件中有 {failed} 个未能分析；其余文件中没有发现，但这不等于没有问题。",
    nothing_analysed="没有分析任何文件，因此无法下结论。",
    limited="范围有限：{limits}。",
    first="优先处理",
    first_step="{title}（{severity}，{count}）",
    overview="风险分布",
    by_severity="按严重程度",
    by_kind="按弱点类型",
    by_folder="按目录",
    folder="目录",
    top_folder="（根目录）",
    other_folders="其他 {count} 个目录",
    total="合计",
    place_count="{count} 处",
    findings="发现",
    all="全部",
    not_detailed="另有 {count} 个较轻的发现，此处不逐一展开",
    not_detailed_note="以上完整列出了最严重的 {told} 个；JSON 和 SARIF 格式包含全部发现。",
    known="基线中已知的发现",
    known_note="这些发现已在基线中：仍然列出，但不影响退出码。",
    hidden="源代码中标记为抑制且已采纳",
    hidden_note="因使用了 --honor-suppressions，被审计源代码中的标记使这些发现不计入报告。",
    suppressed="源代码中带有对该发现的抑制标记；是否采纳：否。",
    suppressed_count="源代码中标记为抑制的",
    honoured="{count}，是否采纳：{answer}",
    yes="是",
    no="否",
    trend="与基线相比",
    trend_counts="新增 {new}，已知 {known}，消失 {gone}",
    unseen="，另有 {unseen} 个位于本次未检查的位置",
    gone="基线之后消失的发现",
    gone_note="基线中有这些发现，本次审计已不再发现。",
    more="以及另外 {count} 个",
    rule="规则",
    coverage="未检查的内容",
    everything_looked_at="所有文件均已分析。",
    coverage_note="未检查的内容可能存在任何问题；那里没有发现并不说明任何情况。",
    analysed="已分析文件",
    searched="其中仅逐行搜索的",
    skipped="跳过的文件",
    failed="失败的文件",
    remarks="关于已分析文件的说明",
    file="文件",
    reason="原因",
    first_files="其中前几个",
    clauses_touched="涉及条款",
    clauses_note="这里只说明发现涉及哪些条款，不代表符合任何条款。整理：关联由本产品给出并附理由；官方：框架发布方自己列出了该弱点。",
    framework="框架",
    clause="条款",
    clause_title="内容",
    basis="关联依据",
    numbers="发现编号",
    curated="整理",
    official="官方",
    step="步骤",
    fix_in_place="修复（第 {first} 至 {last} 行）",
    guidance="处理建议",
    about="关于此类弱点",
    technique_basis="{technique}（{kind}）",
    exploited="此弱点有 {count} 个被利用的 CVE 采用了该技术（KEV、CTID）",
    cell="第 {number} 个单元格第 {line} 行",
    scope="所在函数或类",
    seen="规则能看到多远",
    seen_note="每个发现都对应规则能够追踪的一条路径。没有发现并不证明安全：规则只认识固定的弱点类型，看不到配置、部署和业务逻辑。",
)

WORDS: dict[Language, Wordings] = {"en": _ENGLISH, "zh": _CHINESE}
