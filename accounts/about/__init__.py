"""The site itself: its name, words, rules, colours and announcement, who may look, and who may join."""
