"""Certificates: theory against simulation over a seeded design of settings, as a report."""

from __future__ import annotations

from giantsteps.comparison.certify._certificate import Certificate as Certificate
from giantsteps.comparison.certify._certify import SCALES, Scale, certify, recertify
from giantsteps.comparison.certify._design import Setting, draw
from giantsteps.comparison.certify._families import FAMILIES, Family
from giantsteps.comparison.certify._finding import Finding, Plan
from giantsteps.comparison.certify._group import Group

__all__ = ["certify"]

#: Classes that functions return: documented, and never made by hand.
RETURNED = ["Certificate"]
