from tests.support.cases import desk, held, moderator, reader, rules, say, sender, spam, workers  # noqa: F401
