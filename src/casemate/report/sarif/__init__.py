"""An audit's result as SARIF 2.1.0 that code hosts accept.

Standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. Hosts refuse a whole file for one 0 in a
region and lose alerts whose address lacks the folder of a monorepo, so places are bounded and addresses prefixed here.
"""

from __future__ import annotations

from casemate.report.sarif.log import to_sarif
from casemate.report.sarif.manual import Manual
from casemate.report.sarif.places import address, region
from casemate.report.sarif.upload import to_text

__all__ = ["Manual", "address", "region", "to_sarif", "to_text"]
