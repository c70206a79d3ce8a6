"""Rondel drives AI coding agents through rounds of work and review that survive anything."""

__version__ = "0.1.0"
