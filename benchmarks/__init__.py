"""Benchmarks. Each asks one question, and measures peers and limits in the same run.

Read ratios, not absolute numbers.
"""
