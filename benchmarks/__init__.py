"""Benchmarks. Each asks one question, and measures peers and limits in the same run.

`python3 manage.py bench` runs them in a data folder of their own. Read ratios, not absolutes: the peers take turns with
what is measured, so a busy machine slows both.
"""
