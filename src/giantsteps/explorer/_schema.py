"""The API in words: what can be asked, with which fields, within which limits."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from giantsteps.explorer import _requests as limits
from giantsteps.functions import names as function_names
from giantsteps.problem import BATCHES, INPUTS, LOSSES, OUTPUTS, RULES, WEIGHTS, Init, Ridge, Step
from giantsteps.questions import QUESTIONS, RUN_OPTIONS, Question
from giantsteps.theory import QUANTITIES

#: Fields that take one of a few names.
_CHOICES: dict[str, tuple[str, ...]] = {
    "steps.batch": BATCHES,
    "steps.rule": RULES,
    "steps.loss": LOSSES,
    "readout.batch": BATCHES,
    "init.weights": WEIGHTS,
    "init.output": OUTPUTS,
}


def schema(time_limit: float) -> dict[str, Any]:
    """The description of the API that ``GET schema`` answers.

    ``ask`` is a JSON Schema (2020-12) of the body of ``POST ask``; ``questions`` has the rows of
    the registry.
    """
    problem = _problem()
    return {
        "questions": {name: _question(row) for name, row in QUESTIONS.items()},
        "network_options": {name: _option(option) for name, option in RUN_OPTIONS.items()},
        "quantities": dict(QUANTITIES),
        "lines": {name: label for name, (_, _, label) in limits.LINES.items()},
        "functions": sorted(function_names()),
        "inputs": list(INPUTS),
        "limits": {
            "body_bytes": limits.BODY,
            "cells": limits.CELLS,
            "steps": limits.STEPS,
            "function_characters": limits.TEXT,
            "largest_d": limits.LARGEST_D,
            "largest_network": limits.LARGEST_NETWORK,
            "seeds": limits.SEEDS,
            "seconds": time_limit,
        },
        "ask": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": False,
            "required": ["question", "problem"],
            "properties": {
                "question": {"enum": [n for n, q in QUESTIONS.items() if "theory" in q.sides]},
                "problem": problem,
                "d": {"type": ["integer", "null"], "minimum": 2, "maximum": limits.LARGEST_D},
                "axes": {"type": ["object", "null"], "additionalProperties": {"type": "array"}},
                "options": {"type": ["object", "null"]},
                "partial": {"type": "boolean", "default": False},
            },
        },
    }


def _question(row: Question) -> dict[str, Any]:
    names = ("summary", "answer", "sides", "needs_readout", "needs_step", "finite")
    options = {name: _option(option) for name, option in row.options.items()}
    return {name: getattr(row, name) for name in names} | {"options": options}


def _option(option: Any) -> dict[str, Any]:
    return {name: getattr(option, name) for name in ("default", "allowed", "help", "sides")}


def _problem() -> dict[str, Any]:
    function = {"type": ["string", "object"]}
    law = {"type": ["string", "object"]}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["activation", "teacher", "width"],
        "properties": {
            "activation": function,
            "teacher": function,
            "width": {"type": "number", "exclusiveMinimum": 0},
            "noise_variance": {"type": "number", "minimum": 0, "default": 0.0},
            "steps": {"type": "array", "maxItems": limits.STEPS, "items": _part(Step, "steps")},
            "readout": _part(Ridge, "readout"),
            "init": _part(Init, "init") | {"required": []},
            "inputs": law,
        },
    }


def _part(kind: type, name: str) -> dict[str, Any]:
    found = {item.name: item for item in fields(kind)}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [key for key, item in found.items() if _required(item)],
        "properties": {key: _field(f"{name}.{key}", item) for key, item in found.items()},
    }


def _field(path: str, item: Field[Any]) -> dict[str, Any]:
    if path in _CHOICES:
        return {"enum": list(_CHOICES[path]), "default": item.default}
    if path == "init.second_layer":
        return {"type": ["string", "object"]}
    return {"type": "number"} | ({} if _required(item) else {"default": item.default})


def _required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING
