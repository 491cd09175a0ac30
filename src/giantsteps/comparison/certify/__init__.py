"""Certificates: theory against simulation over a seeded design of settings, as a report."""

from __future__ import annotations

from giantsteps.comparison.certify._certificate import Certificate, Group
from giantsteps.comparison.certify._certify import SCALES, Scale, certify
from giantsteps.comparison.certify._design import FAMILIES, Family, Setting, design
from giantsteps.comparison.certify._finding import Finding, examine

__all__ = [
    "FAMILIES",
    "SCALES",
    "Certificate",
    "Family",
    "Finding",
    "Group",
    "Scale",
    "Setting",
    "certify",
    "design",
    "examine",
]
