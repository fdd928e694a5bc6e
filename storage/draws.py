"""Drawn numbers: random, from 1 to 2^52 - 1, made by PostgreSQL (storage/sql/draws.sql) and compared for
equality only.

Epochs of windows, generations of the policy and revisions of deliveries are drawn. A counter or a sequence would repeat
after a failover to a standby that lacks the newest transactions, and after a restore. A drawn number is exact as a
double (a ZSET score), and so is the XOR of two.

See docs/decisions.md: Windows are valid for one epoch.
"""

from django.db import models


class Draw(models.Func):
    """A new number, drawn at each use."""

    function = "feedsite_draw"
    arity = 0
    output_field = models.BigIntegerField()


class DrawRevision(models.Func):
    """Draws a number of 31 bits, for columns that are integers."""

    template = "(feedsite_draw() >> 21)::integer"
    arity = 0
    output_field = models.IntegerField()
