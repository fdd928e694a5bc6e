"""schemathesis loads this: a form's file (`format: binary`) is a tiny picture."""

import schemathesis
from hypothesis import strategies as st

from tests.support.pictures import encoded, picture

FILES = [encoded(picture(8, 6), kind) for kind in ("JPEG", "PNG", "GIF")]
schemathesis.openapi.format("binary", st.sampled_from(FILES))
