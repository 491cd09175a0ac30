"""Certificates: theory against simulation over a seeded design of settings, as a report."""

from __future__ import annotations

from giantsteps.comparison.certify._certificate import Certificate
from giantsteps.comparison.certify._certify import SCALES, Scale, certify, recertify
from giantsteps.comparison.certify._design import Setting, design
from giantsteps.comparison.certify._families import FAMILIES, Family
from giantsteps.comparison.certify._finding import Finding, Plan, examine
from giantsteps.comparison.certify._group import Group

__all__ = [
    "FAMILIES",
    "SCALES",
    "Certificate",
    "Family",
    "Finding",
    "Group",
    "Plan",
    "Scale",
    "Setting",
    "certify",
    "design",
    "examine",
    "recertify",
]
