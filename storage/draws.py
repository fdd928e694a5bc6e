"""Random numbers of 52 bits, drawn by PostgreSQL (storage/sql/draws.sql) and only compared for equality.

Unlike a sequence they do not repeat after a failover. They and XORs of two are exact as a double (a ZSET score).

See docs/decisions.md: Windows are valid for one epoch.
"""

from django.db import models


class Draw(models.Func):
    """An SQL expression for a new random number at each use."""

    function = "feedsite_draw"
    arity = 0
    output_field = models.BigIntegerField()


class DrawRevision(models.Func):
    """An SQL expression for a random number of 31 bits, for integer columns."""

    template = "(feedsite_draw() >> 21)::integer"
    arity = 0
    output_field = models.IntegerField()
