"""What `manage.py doctor` looks at, a module a subject. A check yields findings, and changes nothing on the site."""
