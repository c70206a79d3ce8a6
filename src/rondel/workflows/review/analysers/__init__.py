"""Analysers: programs and rules that read changed files and report on changed lines."""
