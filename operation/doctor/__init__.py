"""The checks of `manage.py doctor`, one module per subject. They change nothing."""
