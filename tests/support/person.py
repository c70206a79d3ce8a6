"""The person behind the tests: they have said yes to the settings that they write themselves."""

from __future__ import annotations

YES = {"RONDEL_TRUST": "yes"}  # in the environment of every command; the tests of trust take it away
