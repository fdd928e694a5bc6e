from feedsite.public.sitemap import extend
from storage.queue import task


@task("public.extend_sitemap")
def extend_sitemap() -> None:
    """Add full parts of posts to the sitemap."""
    extend()
