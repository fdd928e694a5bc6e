"""How static files are kept: named by their content, and compressed once."""

from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it has no types
    """By gzip only. Where Brotli happens to be installed, as among the tools for development, it would take half a
    minute of the first start; who wants it lets the proxy do it.
    """

    def create_compressor(self, **options: Any) -> Any:
        """The compressor, by gzip only."""
        return super().create_compressor(use_brotli=False, **options)
