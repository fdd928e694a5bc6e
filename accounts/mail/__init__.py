"""Letters by e-mail: written with what they tell of, sent by workers. Recipients are known by address and id only.

See docs/decisions.md: Imports point down.
"""
