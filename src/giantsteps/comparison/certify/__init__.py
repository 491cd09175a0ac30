"""Certificates: theory against simulation over a seeded design of settings, as a report."""

from __future__ import annotations

from giantsteps.comparison.certify._certificate import Certificate as Certificate
from giantsteps.comparison.certify._certify import SCALES as SCALES
from giantsteps.comparison.certify._certify import Scale as Scale
from giantsteps.comparison.certify._certify import certify
from giantsteps.comparison.certify._certify import recertify as recertify
from giantsteps.comparison.certify._design import Setting as Setting
from giantsteps.comparison.certify._design import draw as draw
from giantsteps.comparison.certify._families import FAMILIES as FAMILIES
from giantsteps.comparison.certify._families import Family as Family
from giantsteps.comparison.certify._finding import Finding as Finding
from giantsteps.comparison.certify._finding import Plan as Plan
from giantsteps.comparison.certify._group import Group as Group

__all__ = ["certify"]

#: Classes that functions return: documented, and never made by hand.
RETURNED = ["Certificate"]
