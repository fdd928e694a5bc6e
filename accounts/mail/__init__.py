"""Letters by e-mail: written in the transaction of the event, sent by workers. Knows recipients by address and id.

See docs/decisions.md: Imports point down.
"""
