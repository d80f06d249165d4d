from __future__ import annotations

from itertools import pairwise

import pytest

from casemate.knowledge.gate import mentions


def ids(text: str) -> list[str]:
    return [mention.id for mention in mentions.find(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GDPR Article 32(1)(b)", ["GDPR Art. 32(1)(b)"]),
        ("Art. 32 GDPR", ["GDPR Art. 32"]),
        ("Article 32 of the GDPR. Article 5 of another law.", ["GDPR Art. 32"]),
        ("GDPR Articles 25, 32 and 33(1)", ["GDPR Art. 25", "GDPR Art. 32", "GDPR Art. 33(1)"]),
        ("GDPR Article 5(1)(f) and Article 32(1), point (b)", ["GDPR Art. 5(1)(f)", "GDPR Art. 32(1)(b)"]),
        ("GDPR Article 57 (Tasks)", ["GDPR Art. 57"]),
        ("GDPR Article 33: within 72 hours", ["GDPR Art. 33"]),
        ("GDPR 第32条第1款(b)项", ["GDPR Art. 32(1)(b)"]),
        ("《通用数据保护条例》第三十二条", ["GDPR Art. 32"]),
        ("GDPR第三十二条第一款(b)项、第三十三条", ["GDPR Art. 32(1)(b)", "GDPR Art. 33"]),
        ("https://gdpr-info.eu/art-32-gdpr/", ["GDPR Art. 32"]),
        ("45 CFR 164.312(a)(1)", ["HIPAA 164.312(a)(1)"]),
        ("HIPAA §164.312(b)", ["HIPAA 164.312(b)"]),
        ("45 C.F.R. § 164.312(A)(2)(IV)", ["HIPAA 164.312(a)(2)(iv)"]),
        ("HIPAA 安全规则 §164.312(a)(2)(iv)、§164.312(b)", ["HIPAA 164.312(a)(2)(iv)", "HIPAA 164.312(b)"]),
        ("GB/T 22239-2019 8.1.4.4 d)", ["MLPS 8.1.4.4 d)"]),
        ("等保 8.1.4.4 d)、8.1.4.3 a)", ["MLPS 8.1.4.4 d)", "MLPS 8.1.4.3 a)"]),
        ("MLPS 8.1.4.4", ["MLPS 8.1.4.4"]),
        ("等级保护2.0 三级 8.1.4.3 a)", ["MLPS 8.1.4.3 a)"]),
        ("MLPS level 3 clause 8.1.4.1 d)", ["MLPS 8.1.4.1 d)"]),
        ("ASVS v5.0.0-1.2.4", ["ASVS V1.2.4"]),
        ("ASVS V1.2.4", ["ASVS V1.2.4"]),
        ("OWASP ASVS 4.0.3 V5.3.4", ["ASVS v4.0.3-5.3.4"]),
        ("ASVS 5.0.0 is out", []),
        ("NIST SP 800-53 AC-2(1)", ["NIST AC-2(1)"]),
        ("NIST SP 800-53 Rev. 5 controls AC-2 and SI-10", ["NIST AC-2", "NIST SI-10"]),
        ("AC-2 without its standard. NIST is elsewhere.", []),
        ("PR.AC-1 of the NIST CSF", []),
        ("NIST IA-05(01)", ["NIST IA-5(1)"]),
    ],
)
def test_clauses_are_found_however_a_law_is_cited(text: str, expected: list[str]) -> None:
    assert ids(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OWASP A01", ["OWASP A01"]),
        ("OWASP Top 10 2021: A03", ["A03:2021"]),
        ("OWASP A03 (2021)", ["A03:2021"]),
        ("A3:2017 and A03:2021", ["A03:2017", "A03:2021"]),
        ("https://owasp.org/Top10/A03_2021-Injection/", ["A03:2021"]),
        ("cell A1:2022 of a sheet", []),
        ("OWASP A1:2022", ["A01:2022"]),
        ("D3-CH, d3-array and D3-js", ["D3-CH"]),
        (
            "Sigma rule 0022869c-49f7-4ff2-ba03-85ac42ddac58",
            ["Sigma 0022869c-49f7-4ff2-ba03-85ac42ddac58"],
        ),
        ("device 0022869c-49f7-4ff2-ba03-85ac42ddac58", []),
        ("T1059/001, T1059.0001", ["T1059.001", "T1059.0001"]),
        ("the technique T9999", ["T9999"]),
        ("a T4240 processor", []),
        ("TA0101, M0801, T0831", ["TA0101", "M0801", "T0831"]),
        ("CWE ID: 89, cwe_id=79, CWE #22", ["CWE-89", "CWE-79", "CWE-22"]),
        ("the CWE 2024 list, CWE: 12 findings", []),
        ("CVE-21-1 and cve-2021-44228", ["CVE-21-1", "CVE-2021-44228"]),
        ("nvd.nist.gov/vuln/detail/CVE-2021-44228", ["CVE-2021-44228"]),
        ("capec.mitre.org/data/definitions/66.html", ["CAPEC-66"]),
    ],
)
def test_identifiers_of_every_catalogue_are_found_and_what_only_looks_like_one_is_not(
    text: str, expected: list[str]
) -> None:
    assert ids(text) == expected


def test_no_mention_stands_inside_another() -> None:
    text = "GDPR Article 32, https://cwe.mitre.org/data/definitions/79.html, OWASP A03:2021, NIST AC-2(1)"
    found = mentions.find(text)
    assert all(left.end <= right.start for left, right in pairwise(found))
    assert [text[mention.start : mention.end] for mention in found] == [
        "GDPR Article 32",
        "cwe.mitre.org/data/definitions/79.html",
        "A03:2021",
        "AC-2(1)",
    ]
