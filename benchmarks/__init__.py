"""Benchmarks. Each asks one question, and measures peers and limits in the same run.

`manage.py bench` runs them in their own data folder. Read ratios, not absolute numbers.
"""
