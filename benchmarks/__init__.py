"""Benchmarks: one file a question, every figure beside its peers and limits in the same run.

`python3 manage.py bench` runs them in a data folder of their own. Read ratios, not absolutes: the peers run interleaved
with what is measured, so that a busy machine slows both.
"""
