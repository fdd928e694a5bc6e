"""The checks of `manage.py doctor`, one module per subject. A check yields findings and changes nothing."""
