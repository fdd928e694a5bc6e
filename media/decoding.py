"""The program that decodes pictures, each in a forked child.

It loads neither Django nor the site, so a fork takes a millisecond.

See docs/decisions.md: Pictures are decoded in children with limits.
"""

import contextlib
import io
import sys
import warnings
from pathlib import Path
from typing import Any

import blurhash
import pillow_heif
from PIL import Image, ImageCms, ImageFile, ImageSequence, PngImagePlugin, features

from media import forking

QUALITY, SMALL_QUALITY, SIZE_QUALITY = 85, 80, 78
TINY = 32
"""Longest side of the picture that both hashes are computed from."""
FORMATS = ("JPEG", "PNG", "WEBP", "AVIF", "GIF", "HEIF")
MOVING = frozenset({"PNG", "WEBP", "AVIF", "GIF"})
"""Formats that may be animations. More frames of a JPEG or HEIC are other pictures."""
LEAST_FRAME_MS = 20
ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDEWAYS = frozenset({TURNS[5], TURNS[6], TURNS[7], TURNS[8]})
BYTES_OF_PROGRAM = 448 * 2**20
"""Address space without pixels: interpreter, libraries, decoders' stacks."""
BYTES_OF_PIXEL = 14
"""Address space per allowed pixel: 4 bytes decoded, 3 to 8 more in the decoders of AVIF and HEIC, and a copy in another
mode.
"""


class _PngChunks(PngImagePlugin.PngStream):
    """Chunks of a PNG without its texts, which are not kept. Damaged or very long ones do not matter."""

    def chunk_tEXt(self, pos: int, length: int) -> bytes:  # noqa: N802 (Pillow's names)
        assert self.fp is not None  # noqa: S101 (for the type checker)
        return ImageFile._safe_read(self.fp, length)

    chunk_zTXt = chunk_iTXt = chunk_tEXt  # noqa: N815

    def crc(self, cid: bytes, data: bytes) -> None:
        check = self.crc_skip if cid in (b"tEXt", b"zTXt", b"iTXt") else super().crc
        check(cid, data)


PngImagePlugin.PngStream = _PngChunks  # type: ignore[misc]


class PictureRefusedError(Exception):
    """The picture is refused, for one of `REASONS` of media.decoder."""


# --- From a picture to its files -------------------------------------------------------------------------
def decode(job: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a picture, its preview and its sizes. Raises PictureRefusedError, OSError.

    The header's size is checked before a pixel is decoded.
    """
    Image.MAX_IMAGE_PIXELS = job["pixels"]
    with Image.open(job["source"], formats=FORMATS) as image:
        check_size(image, job["pixels"])
        moves = image.format in MOVING and not job["is_still"] and is_moving(image)
        if job.get("is_stored"):
            made = write_sizes(drop_unused_alpha(to_resizable_mode(image)), job)
            return {"widths": list(made), "is_moving": moves}
        if moves:
            return write_animation(image, job)
        return write_still(image, job)


def check_size(image: Image.Image, pixels: int) -> None:
    """Raise PictureRefusedError for no pixels or too many."""
    width, height = image.size
    if width < 1 or height < 1:
        raise PictureRefusedError("broken")
    if width * height > pixels:
        raise PictureRefusedError("pixels")


def is_moving(image: Image.Image) -> bool:
    """Whether there is a second frame."""
    try:
        image.seek(1)
    except EOFError:
        return False
    finally:
        image.seek(0)
    return True


def write_still(image: Image.Image, job: dict[str, Any]) -> dict[str, Any]:
    """Write a picture, its preview and its sizes."""
    turn = orientation(image)
    size = whole_size(image.size, job, is_sideways=turn in SIDEWAYS)
    if image.format == "JPEG":
        image.draft(image.mode, size)  # the decoder itself halves pictures more than twice as large
    image.load()
    whole = to_plain_rgb(resize_to(to_resizable_mode(image), size), image.info.get("icc_profile"))
    if turn is not None:
        whole = whole.transpose(turn)
    uncut = whole
    if job["is_square"]:
        whole = squared(whole, job["longest"])
    extension = save(whole, job["target"], QUALITY)
    found = facts(whole, extension, job) | smaller_files(whole, job)
    if job["is_square"]:
        found["phash"] = difference_hash(hash_thumbnail(shrink_to(uncut, job["small"])))
    return found


def write_animation(image: Image.Image, job: dict[str, Any]) -> dict[str, Any]:
    """Write an animation as WebP, and its preview."""
    frames: list[Image.Image] = []
    durations: list[int] = []
    pixels = 0
    for number, frame in enumerate(ImageSequence.Iterator(image)):
        if number == 0 and getattr(image, "default_image", False):
            continue  # an APNG has it for programs that show no animation
        check_size(frame, job["pixels"])
        pixels += frame.width * frame.height
        if len(frames) >= job["frames"] or pixels > job["pixels"]:
            raise PictureRefusedError("frames")
        frame.load()
        size = whole_size(frame.size, job)
        frames.append(resize_to(frame.convert("RGBA"), size))
        durations.append(max(LEAST_FRAME_MS, int(frame.info.get("duration") or 100)))
    first = frames[0]
    if any(frame.size != first.size for frame in frames):
        raise PictureRefusedError("broken")
    path = job["target"] + "webp"
    first.save(
        path,
        "WEBP",
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=loop_count(image),
        quality=75,
        method=2,
        exif=b"",
        xmp=b"",
        icc_profile=b"",
    )
    return facts(first, "webp", job) | smaller_files(drop_unused_alpha(first), job) | {"is_moving": True}


def loop_count(image: Image.Image) -> int:
    """How often an animation plays. 0: forever."""
    said: Any = image.info.get("loop", 0)
    return said if isinstance(said, int) and 0 <= said < 65536 else 0


def smaller_files(whole: Image.Image, job: dict[str, Any]) -> dict[str, Any]:
    """Write the sizes and the preview, from the least size that is larger. Returns their facts."""
    made = write_sizes(whole, job)
    larger = next((each for each in made.values() if max(each.size) >= job["small"]), whole)
    return write_preview(shrink_to(larger, job["small"]), job) | {"widths": list(made), "is_moving": False}


def write_preview(small: Image.Image, job: dict[str, Any]) -> dict[str, Any]:
    """Write the preview. Returns its facts and hashes."""
    extension = save(small, job["target"] + "small.", SMALL_QUALITY)
    tiny = hash_thumbnail(small)
    wide = tiny.width >= tiny.height
    return {
        "small_ext": extension,
        "small_width": small.width,
        "small_height": small.height,
        "phash": difference_hash(tiny),
        "blurhash": blurhash.encode(rows_of(tiny), 4 if wide else 3, 3 if wide else 4),
    }


def write_sizes(image: Image.Image, job: dict[str, Any]) -> dict[int, Image.Image]:
    """Write a WebP of each narrower width, of a square picture of each, so that its address alone names them. Returns
    the pictures, the narrowest first.

    Each is made from the next larger one. Method 0 takes a third of the time for 3 % more bytes.
    """
    widths = [width for width in job["widths"] if job["is_square"] or width < image.width]
    made: dict[int, Image.Image] = {}
    for width in reversed(widths):
        size = min(width, image.width), max(1, round(image.height * min(width, image.width) / image.width))
        image = image if image.size == size else image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
        save_webp(image, f"{job['target']}{width}.", SIZE_QUALITY, method=0)
        made[width] = image
    return dict(reversed(made.items()))


def hash_thumbnail(small: Image.Image) -> Image.Image:
    """The small picture that hashes are computed from."""
    return over_white(small).resize(fitted_size(small.size, TINY), Image.Resampling.BOX)


def rows_of(tiny: Image.Image) -> list[list[Any]]:
    """The pixels, row by row."""
    pixels = tiny.tobytes()
    triples = [pixels[at : at + 3] for at in range(0, len(pixels), 3)]
    return [triples[at : at + tiny.width] for at in range(0, len(triples), tiny.width)]


def facts(image: Image.Image, extension: str, job: dict[str, Any]) -> dict[str, Any]:
    """Facts of the stored file."""
    size = Path(job["target"] + extension).stat().st_size
    return {"ext": extension, "width": image.width, "height": image.height, "size": size}


# --- Pixels ----------------------------------------------------------------------------------------------
def orientation(image: Image.Image) -> Image.Transpose | None:
    """The turn in EXIF, if it can be read."""
    try:
        return TURNS.get(int(image.getexif().get(ORIENTATION, 1)))
    except Exception:  # noqa: BLE001 (parsers of hostile metadata raise anything)
        return None


def whole_size(size: tuple[int, int], job: dict[str, Any], *, is_sideways: bool = False) -> tuple[int, int]:
    """Scale down until the longer side is at most `longest` and the width at most `width`; a square's shorter side is
    at most `longest`.
    """
    if job["is_square"]:
        return scaled(size, job["longest"] / min(size))
    return scaled(size, min(job["longest"] / max(size), job["width"] / size[is_sideways]))


def fitted_size(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """Scale down until the longer side is at most `longest`."""
    return scaled(size, longest / max(size))


def scaled(size: tuple[int, int], scale: float) -> tuple[int, int]:
    """The size times `scale`, not enlarged."""
    return max(1, round(size[0] * min(1.0, scale))), max(1, round(size[1] * min(1.0, scale)))


def to_resizable_mode(image: Image.Image) -> Image.Image:
    """Reduce 16-bit gray to 8 bits and expand palettes, for resizing."""
    if image.mode.startswith("I"):  # 16 bits of gray
        whole = image if image.mode == "I" else image.convert("I")
        return whole.point([level >> 8 for level in range(65536)], "L")
    if image.mode in ("P", "PA", "1", "LA", "La", "RGBa") or "transparency" in image.info:
        is_clear = image.mode in ("PA", "LA", "La", "RGBa") or "transparency" in image.info
        return image.convert("RGBA" if is_clear else "RGB")
    return image


def resize_to(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Resize. HAMMING looks as sharp as LANCZOS here in half the time."""
    if image.size == size:
        return image
    return image.resize(size, Image.Resampling.HAMMING, reducing_gap=3.0)


def squared(image: Image.Image, longest: int) -> Image.Image:
    """Cut out the middle square."""
    side = min(*image.size, longest)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def shrink_to(image: Image.Image, longest: int) -> Image.Image:
    """The preview-sized picture."""
    size = fitted_size(image.size, longest)
    return image if image.size == size else image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def to_plain_rgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """RGB or RGBA in sRGB, without metadata."""
    has_alpha = image.mode == "RGBA"
    if profile and image.mode in ("RGB", "CMYK", "RGBA"):
        with contextlib.suppress(Exception):  # ignore a broken profile
            image = in_srgb(image, profile)
    if image.mode != "RGB" and not has_alpha:
        image = image.convert("RGB")
    return drop_unused_alpha(image)


def in_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Apply and drop the colour profile. Raises what LittleCMS does."""
    given = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    if "sRGB" in ImageCms.getProfileDescription(given):
        return image
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    changed = ImageCms.profileToProfile(image, given, ImageCms.createProfile("sRGB"), outputMode=mode)
    return changed or image


def drop_unused_alpha(image: Image.Image) -> Image.Image:
    """RGB if no pixel is transparent."""
    if image.mode == "RGBA" and image.getchannel("A").getextrema()[0] == 255:
        return image.convert("RGB")
    return image


def over_white(image: Image.Image) -> Image.Image:
    """The picture on a white background."""
    if image.mode == "RGB":
        return image
    white = Image.new("RGBA", image.size, "white")
    white.alpha_composite(image.convert("RGBA"))
    return white.convert("RGB")


def save(image: Image.Image, target: str, quality: int) -> str:
    """Write pixels: JPEG, or WebP if transparent. Returns the extension."""
    if image.mode == "RGB":
        bare(image).save(target + "jpg", "JPEG", quality=quality)
        return "jpg"
    save_webp(image, target, quality, method=2)
    return "webp"


def save_webp(image: Image.Image, target: str, quality: int, *, method: int) -> None:
    """Write pixels as WebP."""
    bare(image).save(target + "webp", "WEBP", quality=quality, method=method, exif=b"", xmp=b"", icc_profile=b"")


def bare(image: Image.Image) -> Image.Image:
    """The same pixels without `info`, because writers keep parts of it."""
    plain = Image.new(image.mode, image.size)
    plain.im = image.im
    return plain


def difference_hash(tiny: Image.Image) -> int:
    """The perceptual hash (dHash), signed: 64 bits, set if a pixel is lighter than its left neighbour."""
    gray = tiny.convert("L").resize((9, 8), Image.Resampling.BILINEAR).tobytes()
    bits = 0
    for row in range(8):
        for column in range(8):
            bits = bits << 1 | (gray[row * 9 + column + 1] > gray[row * 9 + column])
    return bits - 2**64 if bits >= 2**63 else bits


# --- The child -------------------------------------------------------------------------------------------
def address_space(pixels: int) -> int:
    """A child's address space limit in bytes."""
    return BYTES_OF_PROGRAM + BYTES_OF_PIXEL * pixels


def confine(job: dict[str, Any]) -> None:
    """Limit this process."""
    memory = address_space(job["pixels"])
    forking.confine(memory=memory, seconds=job["seconds"], size=job["bytes"], wall=job["wall"])


def run_job(job: dict[str, Any], report: forking.Report) -> dict[str, Any]:
    """Facts of the file, or the `reason` of its refusal."""
    confine(job)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return decode(job)
    except PictureRefusedError as error:
        return {"reason": str(error)}
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return {"reason": "pixels"}
    except MemoryError:
        return {"reason": "memory"}
    except OSError as error:
        return {"reason": "full" if error.errno in forking.FULL else "broken"}
    except Exception:  # noqa: BLE001 (decoders of hostile bytes raise anything)
        return {"reason": "broken"}


def preload_codecs() -> None:
    """Load now what decoders load at their first picture."""
    pillow_heif.register_heif_opener()
    Image.init()
    features.check("webp")
    tiny = Image.new("RGB", (16, 16))
    tiny.quantize(2)
    ImageCms.createProfile("sRGB")


if __name__ == "__main__":
    preload_codecs()
    forking.serve(int(sys.argv[1]), run_job)
