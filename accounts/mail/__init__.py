"""E-mail letters: written in the transaction of their subject, sent by workers. Knows recipients by address and id.

See docs/decisions.md: Imports point down.
"""
